// What is said of a map. The sentences come from viz/reading.py, with gaps; only the numbers are filled in here.

function fill(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

function number(words, weight) {
  return weight === 0 ? '0.0000' : weight < 0.0001 ? words.under : weight.toFixed(4);
}

function signedNumber(difference) {
  return (difference < 0 ? '−' : '+') + Math.abs(difference).toFixed(4);
}

function percent(words, share) {
  if (share > 0 && share < 0.001) return words.trifle;
  return share === 0 || share >= 0.1 ? `${(100 * share).toFixed(0)} %` : `${(100 * share).toFixed(1)} %`;
}

function nameOf(stage, place) {
  return fill(place.head === null ? stage.words.mean : stage.words.head,
    {head: place.head + 1, layer: place.layer + 1, heads: stage.maps.kinds[place.kind].heads});
}

function aloud(stage, place, query, key) {
  const {maps, words} = stage, {queries, keys, out} = maps.kinds[place.kind], name = nameOf(stage, place);
  const at = query * keys.length + key, code = maps.codes(place)[at];
  const values = {head: name[0].toUpperCase() + name.slice(1), query: queries[query], key: keys[key]};
  if (maps.empty(place, query)) return fill(words.empty, values);
  if (code) return fill(words.blocked, {...values, why: words.reasons[code]});
  const said = fill(words.takes, {...values, share: percent(words, maps.weights(place)[at])});
  return out && out[query] !== words.pad ? said + ' ' + fill(words.helps, {out: out[query]}) : said;
}

function facts(stage, place) {
  const {maps, words} = stage, {queries, names, out} = maps.kinds[place.kind], [worst, least, most] = maps.stats(place);
  const kind = words.kinds[place.kind], [rows, columns] = names;
  const empty = queries.filter((_, query) => maps.empty(place, query)).length;
  const parts = [
    fill(words.what, {kind: kind[0].toUpperCase() + kind.slice(1), name: nameOf(stage, place)}),
    fill(words.axes, {rows: out ? fill(words.in_out, {language: rows}) : rows, columns}),
  ];
  if (empty < queries.length) {
    parts.push(worst === 0 ? words.sums
      : worst <= 1e-5 ? fill(words.nearly, {worst: worst.toExponential(0)})
      : fill(words.off, {worst: worst.toExponential(1)}));
    parts.push(fill(words.range, {least: number(words, least), most: number(words, most)}));
  }
  if (empty) parts.push(fill(words.nothing, {count: empty}));
  return parts.join(' ');
}

// The pieces on which heads rest, where they take over half of some rows that had a choice.
function rests(stage, place) {
  const {maps, words} = stage, {queries, keys} = maps.kinds[place.kind];
  const weights = maps.weights(place), codes = maps.codes(place);
  return keys.flatMap((piece, key) => {
    if (!words.resting.includes(piece)) return [];
    const rows = queries.filter((_, query) => {
      const row = codes.subarray(query * keys.length, (query + 1) * keys.length);
      return weights[query * keys.length + key] > 0.5 && row.filter((code) => !code).length > 1;
    }).length;
    return rows ? [fill(words.rests, {piece, rows, all: queries.length}) + ' ' + words.common] : [];
  });
}

// The share of all weight on lines that are too faint to be drawn.
function hidden(weights, faint) {
  let all = 0, left = 0;
  for (const weight of weights) { all += weight; if (weight < faint) left += weight; }
  return left / Math.max(all, 1e-9);
}

// What a cell says under the pointer.
function cellSaid(stage, place, query, key) {
  const {maps, words} = stage, {queries, keys, out} = maps.kinds[place.kind], at = query * keys.length + key;
  const name = queries[query] + (out ? ' → ' + out[query] : ''), code = maps.codes(place)[at], value = maps.weights(place)[at];
  if (place.set === DIFFERENCE) return [`${name}, ${keys[key]}`, signedNumber(value)];
  if (code) return [`${name}, ${keys[key]}`, words.reasons[code]];
  return [name, fill(words.reads, {key: keys[key], weight: number(words, value)})];
}
