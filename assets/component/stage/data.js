// The payload that viz/stage.py packs, and the maps in it: typed arrays, one row of keys after the other.

const SIZES = {f4: 4, u2: 2, u1: 1};

// Header and parts of a payload: {name, sets, kinds, parts: Map of name to {type, shape, bytes}}.
async function unpack(bytes) {
  const copy = bytes.slice();  // what Streamlit hands over begins at an odd place
  const start = 4 + new DataView(copy.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(copy.subarray(4, start)));
  let body = copy.slice(start).buffer;
  if (header.deflated) {
    body = await new Response(new Blob([body]).stream().pipeThrough(new DecompressionStream('deflate'))).arrayBuffer();
  }
  const parts = new Map();
  for (const [name, type, shape, at] of header.parts) {
    const count = shape.reduce((a, b) => a * b, 1);
    parts.set(name, numbers(type, body, at, count));
  }
  return {...header, parts};
}

// Floats as they are; of 16 bits all low bytes lie before all high ones.
function numbers(type, body, at, count) {
  if (type === 'f4') return new Float32Array(body, at, count);
  const bytes = new Uint8Array(body, at, count * SIZES[type]);
  if (type === 'u1') return bytes;
  const whole = new Uint16Array(count);
  for (let i = 0; i < count; i += 1) whole[i] = bytes[i] | (bytes[count + i] << 8);
  return whole;
}

// The maps by place. A place is {set, kind, layer, head}: set 0 or 1 is before or after a change, DIFFERENCE what
// differs; head null is the mean of the layer's heads. Layers of long inputs come one by one: `take` adds them.
const DIFFERENCE = 'difference';
const KEPT = 2 ** 24;  // numbers, or pixels, that are kept so as not to be computed again

class Maps {
  constructor(payload) {
    Object.assign(this, {name: payload.name, kinds: payload.kinds, sets: payload.sets, parts: payload.parts});
    this.kept = new Map();
  }

  take(payload) {
    for (const [name, part] of payload.parts) if (!this.parts.has(name)) this.parts.set(name, part);
  }

  has(kind, layer) {
    return this.parts.has(`0.${kind}.${layer}`);
  }

  // (Q * K) numbers from 0 to 1, of a difference from -1 to 1.
  weights({set, kind, layer, head}) {
    const key = `${set}.${kind}.${layer}.${head}`;
    let found = this.kept.get(key);
    if (!found) {
      found = this.computed(set, kind, layer, head);
      if (this.kept.size * found.length > KEPT) this.kept.clear();
      this.kept.set(key, found);
    }
    return found;
  }

  computed(set, kind, layer, head) {
    if (set === DIFFERENCE) {
      const before = this.weights({set: 0, kind, layer, head}), after = this.weights({set: 1, kind, layer, head});
      return after.map((weight, i) => weight - before[i]);
    }
    const {heads, queries, keys} = this.kinds[kind], size = queries.length * keys.length;
    const layerOf = this.parts.get(`${set}.${kind}.${layer}`);
    const steps = layerOf instanceof Float32Array ? 1 : layerOf instanceof Uint16Array ? 65535 : 255;
    const one = (head) => layerOf.subarray(head * size, (head + 1) * size);
    if (head !== null && steps === 1) return one(head);
    // Loops, not `from` and `reduce`: a step of 256 pieces would spend its frame in calls.
    const found = new Float32Array(size), [from, to] = head === null ? [0, heads] : [head, head + 1];
    for (let i = 0; i < size; i += 1) {
      let sum = 0;
      for (let head = from; head < to; head += 1) sum += layerOf[head * size + i];
      found[i] = sum / (to - from) / steps;
    }
    return found;
  }

  // Which of a kind's masks a place has: a number that is equal where the masks are.
  mask({set, kind, layer, head}) {
    const {heads} = this.kinds[kind];
    return this.parts.get(`${set}.${kind}.mask`)[layer * (heads + 1) + (head ?? heads)];
  }

  // (Q * K) reasons, 0 for a cell that is allowed. A difference is a number everywhere.
  codes(place) {
    const {queries, keys} = this.kinds[place.kind], size = queries.length * keys.length;
    if (place.set === DIFFERENCE) return new Uint8Array(size);
    const at = this.mask(place) * size;
    return this.parts.get(`${place.set}.${place.kind}.masks`).subarray(at, at + size);
  }

  // [how far row sums are from 1 at most, least, largest weight], as Python measured them.
  stats({set, kind, layer, head}) {
    const {heads} = this.kinds[kind], at = 3 * (layer * (heads + 1) + (head ?? heads));
    return this.parts.get(`${set}.${kind}.stats`).subarray(at, at + 3);
  }

  favourite(place, query) {
    const {keys} = this.kinds[place.kind], weights = this.weights(place);
    let best = 0;
    for (let key = 1; key < keys.length; key += 1) {
      if (weights[query * keys.length + key] > weights[query * keys.length + best]) best = key;
    }
    return best;
  }

  empty(place, query) {
    const {keys} = this.kinds[place.kind];
    return this.codes(place).subarray(query * keys.length, (query + 1) * keys.length).every((code) => code > 0);
  }
}

// Where stages and the carriers of their maps meet.
globalThis.headlight ??= {maps: new Map(), news: new EventTarget()};
