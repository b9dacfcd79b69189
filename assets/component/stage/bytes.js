// Carries the maps of a sentence to the stage, apart from the place of the reader: what was sent once stays, however
// often the place changes. Every stage and carrier of the page meets at `globalThis.headlight`.
// data: the payload, as bytes

const KEEP = 4;  // sentences whose maps stay in the browser

export default function ({data}) {
  unpack(data).then((payload) => {
    const known = headlight.maps.get(payload.name);
    if (known) known.take(payload);
    else headlight.maps.set(payload.name, new Maps(payload));
    for (const name of [...headlight.maps.keys()].slice(0, -KEEP)) headlight.maps.delete(name);
    headlight.news.dispatchEvent(new Event('maps'));
  });
}
