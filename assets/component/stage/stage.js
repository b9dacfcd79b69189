// The stage: attention maps that are stepped through in the browser. Python sends the maps once (bytes.js) and says
// where the reader stands; steps happen here. When the reader rests, the place is written into the address, and
// Streamlit reads its controls from there as after Back: no entry of the history, and all controls in one run. Setting
// them from Python instead would push an entry for each.
// data: {maps: name of a payload, place, usual, values, palette, words}. A place in the terms of the address, layers
// and heads from 1: {kind, layer, head, row, column, mean, drawing, faint, also, hall}.

const PAUSE = 300;  // ms without a step until the place is in the address, and Python is told
const SELDOM = 2500;  // ms between two tellings: who steps on and on is not followed step by step
const LOST = 2500;  // ms after which something told and not answered is told again

// A place as text, to compare places by.
const written = (place) => Object.keys(place).sort().map((name) => `${name}=${place[name]}`).join('&');

class Stage extends Hands {
  constructor(root) {
    super();
    this.root = root;
    this.unsaid = new Set();  // names of what was changed since Python was told
    this.told = [];  // places that Python was told of and has not answered yet, oldest first
    this.heard = '';  // the place that Python stood at last
    this.toldAt = -SELDOM;
    this.zoom = null;
    this.moved = {row: 0, column: 0};
    this.hover = null;
    this.covered = {sheet: false, said: false};
    this.build();
    this.arrived = () => this.load();
    this.pressed = (event) => this.cover(event);
    // A press elsewhere may be a link: what the reader sees must be in the address before it is followed.
    this.outward = (event) => { if (this.timer && !event.composedPath().includes(this.sheet)) this.write(); };
    // The reader went somewhere: what is in the address there holds.
    this.gone = () => {
      if (this.telling) return;
      clearTimeout(this.timer);
      clearTimeout(this.writing);
      this.timer = null;
      this.told = [];
      this.unsaid.clear();
    };
    this.sizes = new ResizeObserver(() => this.redraw());
  }

  build() {
    const {root} = this;
    this.node = make('div', 'stage');
    this.bar = make('div', 'bar');
    this.bar.setAttribute('role', 'toolbar');
    this.said = make('div', 'said');
    this.aloud = make('p', 'aloud');
    this.aloud.setAttribute('aria-live', 'polite');
    this.said.append(this.aloud);
    this.sheet = make('div', 'sheet');
    this.sheet.tabIndex = 0;
    this.sheet.setAttribute('role', 'application');
    this.base = make('canvas', 'base');
    this.over = make('canvas', 'over');
    for (const canvas of [this.base, this.over]) canvas.setAttribute('aria-hidden', 'true');
    this.tip = make('div', 'tip');
    this.sheet.append(this.base, this.over, this.tip);
    this.facts = make('div', 'facts quiet');
    this.table = make('details', 'twin');
    this.hall = make('dialog', 'hall');
    this.node.append(this.bar, this.said, this.sheet, this.facts, this.table);
    root.replaceChildren(this.node, this.hall);
    this.node.addEventListener('keydown', (event) => this.key(event));
    for (const type of ['keyup', 'keypress']) this.node.addEventListener(type, (event) => event.stopPropagation());
    this.sheet.addEventListener('pointerdown', (event) => this.down(event));
    this.sheet.addEventListener('pointermove', (event) => this.move(event));
    this.sheet.addEventListener('pointerup', (event) => this.up(event));
    this.sheet.addEventListener('pointerleave', () => this.mark(null));
    this.sheet.addEventListener('wheel', (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.zoomBy(event.deltaY > 0 ? 1.25 : 0.8);
    }, {passive: false});
    this.hall.addEventListener('close', () => { if (this.place?.hall) this.step({hall: false}); });
    this.table.addEventListener('toggle', () => this.tabulate());
  }

  // --- what Python says -----------------------------------------------------------------------------------------

  show(data, lack) {
    this.lacks = lack;
    this.data = data;
    this.words = data.words;
    if (!this.connected) {
      this.connected = true;
      document.addEventListener('keydown', this.pressed);
      document.addEventListener('pointerdown', this.outward, true);
      this.node.addEventListener('focusout', this.outward);
      window.addEventListener('popstate', this.gone);
      headlight.news.addEventListener('maps', this.arrived);
      this.sizes.observe(this.root);
    }
    this.load();
  }

  // Take the maps that Python speaks of, when they are there; until then the old picture stays.
  load() {
    const {data} = this, maps = headlight.maps.get(data.maps);
    this.node.setAttribute('aria-busy', String(!maps));
    if (!maps) return;
    if (maps !== this.maps) { this.maps = maps; this.zoom = null; }
    const palette = JSON.stringify(data.palette);
    if (palette !== this.palette) {
      this.palette = palette;
      this.paint = new Paint(this.base.getContext('2d'), data.palette, getComputedStyle(this.node).fontFamily);
      this.paint.over = new Paint(this.over.getContext('2d'), data.palette, this.paint.font);
      this.node.style.setProperty('--accent', data.palette.accent);
    }
    this.hear(written(data.place));
    this.controls();
    this.redraw();
  }

  // What Python says may be an echo of an older step, or say that it never heard of the last one.
  hear(place) {
    const last = this.told.at(-1);
    if (place !== last) {
      if (this.told.includes(place)) return;
      if (last && place === this.heard) {
        if (!this.timer && performance.now() - this.toldAt > LOST) this.tell();  // the server was away
        return;
      }
    }
    this.told = [];
    this.heard = place;
    if (!this.place || !this.timer) this.place = this.inside(this.data.place);
  }

  // A place of the address, as the maps count: from 0, and inside what there is.
  inside(place) {
    const kind = this.maps.kinds[place.kind] ? place.kind : Object.keys(this.maps.kinds)[0];
    const {layers, heads} = this.maps.kinds[kind], held = (at, count) => Math.min(Math.max(0, at - 1), count - 1);
    return {...place, kind, layer: held(place.layer, layers), head: held(place.head, heads), row: place.row - 1, column: place.column - 1,
      also: place.also.split(',').map((head) => Number(head) - 1).filter((head) => head >= 0 && head < heads)};
  }

  outside() {
    const {kind, layer, head, row, column, mean, drawing, faint, also, hall} = this.place;
    return {kind, layer: layer + 1, head: head + 1, row: row + 1, column: column + 1, mean, drawing, faint,
      also: also.map((head) => head + 1).join(','), hall};
  }

  // --- what Python is told --------------------------------------------------------------------------------------

  step(change) {
    const before = this.outside();
    this.place = {...this.place, ...change};
    for (const [name, value] of Object.entries(this.outside())) if (value !== before[name]) this.unsaid.add(name);
    this.rest();
    this.controls();
    this.redraw();
  }

  // Python is told when the reader rests; playing is no rest.
  rest() {
    clearTimeout(this.timer);
    clearTimeout(this.writing);
    const due = Math.max(PAUSE, this.toldAt + SELDOM - performance.now());
    this.timer = setTimeout(() => (this.playing ? this.rest() : this.tell()), due);
    if (due > PAUSE) this.writing = setTimeout(() => this.write(), PAUSE);
  }

  // What changed, and only that: another control may have been moved meanwhile.
  write() {
    const url = new URL(location.href);
    for (const [name, value] of Object.entries(this.outside())) {
      if (!this.unsaid.has(name)) continue;
      if (value === this.data.usual[name]) url.searchParams.delete(name);
      else url.searchParams.set(name, value);
    }
    url.searchParams.sort();
    history.replaceState(history.state, '', url);
  }

  tell() {
    clearTimeout(this.timer);
    clearTimeout(this.writing);
    this.timer = null;
    this.toldAt = performance.now();
    this.write();
    this.unsaid.clear();
    const place = written(this.outside());
    if (place === this.heard && !this.told.length) return;  // there and back again
    this.told.push(place);
    this.telling = true;
    window.dispatchEvent(new PopStateEvent('popstate'));
    this.telling = false;
  }

  missing() {
    const {kind, layer, drawing} = this.place, layers = drawing === 'all' ? layersOf(this, this.place) : [layer];
    const lacks = layers.find((layer) => !this.maps.has(kind, layer));
    return lacks === undefined ? null : [kind, lacks];
  }

  // Called when the page is left, and also before Python's next word is shown: then the stage stays where it is.
  leave() {
    setTimeout(() => {
      if (this.root.isConnected) return;
      this.pause();
      clearTimeout(this.timer);
      clearTimeout(this.writing);
      this.connected = false;
      document.removeEventListener('keydown', this.pressed);
      document.removeEventListener('pointerdown', this.outward, true);
      window.removeEventListener('popstate', this.gone);
      headlight.news.removeEventListener('maps', this.arrived);
      this.sizes.disconnect();
    });
  }
}

export default function ({parentElement, data, setStateValue}) {
  const root = parentElement.querySelector('.root'), stage = root.stage ??= new Stage(root);
  stage.show(data, setStateValue);
  return () => stage.leave();
}
