/** The policy layers in their order, the deciding one marked. */

export function Layers({ layers, hit }: { layers: { layer: string; reason: string }[]; hit: string }) {
  const names = layers.map((each) => each.layer);
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
