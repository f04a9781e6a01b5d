/** The policy layers in their order, the deciding one marked. */

const NAMES: Record<string, string> = { ruled: "rules", mode_default: "default" };

export function Layers({ layers, hit }: { layers: { layer: string; reason: string }[]; hit: string }) {
  const names = layers.map((each) => NAMES[each.layer] ?? each.layer);
  if (!names.includes(hit)) names.push(hit); // a trial, or the tool itself
  const at = names.indexOf(hit);
  return (
    <div
      className="layers"
      role="img"
      title="The layers in their order; those before the marked one had no say"
      aria-label={`Decided in layer ${hit}; the ${Math.max(0, at)} before it had no say`}
    >
      {names.map((name, index) => (
        <span key={name} className={index === at ? "hit" : ""}>
          {name}
        </span>
      ))}
    </div>
  );
}
