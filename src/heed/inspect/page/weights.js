// Attention weights of a layer and a head.

/** The words that attention of a kind attends to: the columns of its matrices. */
export function columnsOf(data, kind) {
  if (kind === "text") return data.target;
  return kind === "source"
    ? data.source
    : [{ text: "", kind: "begin", prob: null, tokens: [] }, ...data.target.slice(0, -1)];
}

function mean(matrices) {
  return matrices[0].map((row, r) =>
    row.map((_, c) => matrices.reduce((sum, m) => sum + m[r][c], 0) / matrices.length),
  );
}

/** The matrix of a layer and a head; `layer` may be "upper" (the second half) or "all", and `head` "mean". */
export function matrixOf(attention, layer, head) {
  const { layers } = attention;
  const chosen =
    layer === "all"
      ? layers
      : layer === "upper"
        ? layers.slice(Math.floor(layers.length / 2))
        : [layers[Number(layer)]];
  return mean(chosen.map(({ heads }) => (head === "mean" || heads.length === 1 ? mean(heads) : heads[Number(head)])));
}

export function layerChoices(attention) {
  const { layers } = attention;
  const each = layers.map((_, place) => [place, `layer ${place + 1}`]);
  if (layers.length === 1) return attention.detail === "mean" ? [["all", "mean of the upper layers"]] : each;
  return [["upper", "mean of the upper half"], ["all", "mean of all layers"], ...each];
}

export function headChoices(attention) {
  const count = attention.layers[0].heads.length;
  return [
    ["mean", count > 1 ? "mean of all heads" : attention.detail === "heads" ? "the only head" : "mean of all heads"],
    ...(count > 1 ? Array.from({ length: count }, (_, place) => [place, `head ${place + 1}`]) : []),
  ];
}
