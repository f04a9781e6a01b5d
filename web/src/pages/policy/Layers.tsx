/** The policy layers in their order, the deciding one marked. */

const ORDER = ["floor", "bypass", "budget", "plan", "denied", "allowed", "ruled", "exhaustion", "default"];

export function Layers({ layers = ORDER, hit }: { layers?: string[]; hit: string }) {
  const names = layers.length ? layers : ORDER;
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
