// What the reader does on the stage: its buttons, keys, pointer and touch; playing, covering, the hall.

const BEAT = 900;  // ms a map stays while playing
const VIEWS = ['map', 'heads', 'all', 'lines'];

class Hands extends Drawing {
  controls() {
    const {words, place, bar, maps} = this;
    if (!this.buttons) {
      const button = (name, act, group) => {
        const node = make('button', '', words.buttons[name]);
        node.type = 'button';
        node.title = words.titles[name] ?? words.buttons[name];
        node.addEventListener('click', act);
        group.append(node);
        return node;
      };
      const [views, tools, zooms, lines] = ['views', 'tools', 'zooms', 'faint'].map((name) => make('span', name));
      views.setAttribute('role', 'radiogroup');
      views.setAttribute('aria-label', words.view);
      this.buttons = {};
      for (const view of VIEWS) {
        this.buttons[view] = button(view, () => this.step({drawing: view}), views);
        this.buttons[view].setAttribute('role', 'radio');
      }
      this.buttons.play = button('play', () => (this.playing ? this.pause() : this.play()), tools);
      this.buttons.hide = button('hide', () => this.hide('sheet'), tools);
      this.buttons.hall = button('hall', () => this.step({hall: true}), tools);
      for (const [name, by] of [['closer', 0.67], ['wider', 1.5]]) this.buttons[name] = button(name, () => this.zoomBy(by), zooms);
      this.slider = Object.assign(make('input'), {type: 'range', min: 0, max: 50, step: 1});
      this.slider.addEventListener('input', () => this.step({faint: Number(this.slider.value)}));
      this.slider.addEventListener('keydown', (event) => event.stopPropagation());
      const label = make('label', '', words.faint + ' ');
      label.append(this.slider);
      lines.append(label);
      this.buttons.several = button('several', () => {
        this.several = !this.several;
        if (this.several) this.controls(); else this.step({also: []});
      }, lines);
      Object.assign(this, {zooms, lines});
      bar.setAttribute('aria-label', words.bar);
      bar.append(views, tools, zooms, lines);
    }
    for (const view of VIEWS) this.buttons[view].setAttribute('aria-checked', String(view === place.drawing));
    const {queries, keys} = maps.kinds[place.kind];
    this.zooms.hidden = place.drawing !== 'map' || Math.max(queries.length, keys.length) < 16;
    this.lines.hidden = place.drawing !== 'lines';
    this.slider.value = place.faint;
    this.slider.setAttribute('aria-valuetext', `${place.faint} %`);
    this.several ||= place.also.length > 0;
    this.buttons.several.setAttribute('aria-pressed', String(Boolean(this.several)));
    this.buttons.several.disabled = place.mean;
    this.buttons.play.textContent = words.buttons[this.playing ? 'pause' : 'play'];
    this.buttons.hide.textContent = words.buttons[this.covered.sheet ? 'reveal' : 'hide'];
    if (!place.also.length && place.drawing !== 'lines') this.several = false;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    event.stopPropagation();
    const onButton = event.composedPath()[0] instanceof HTMLButtonElement;
    const acts = {
      ArrowLeft: () => (event.shiftKey ? this.choose(0, -1) : this.go(0, -1)),
      ArrowRight: () => (event.shiftKey ? this.choose(0, 1) : this.go(0, 1)),
      ArrowUp: () => (event.shiftKey ? this.choose(-1, 0) : this.go(1, 0)),
      ArrowDown: () => (event.shiftKey ? this.choose(1, 0) : this.go(-1, 0)),
      ' ': onButton ? null : () => (this.playing ? this.pause() : this.play()),
      v: () => this.step({drawing: VIEWS[(VIEWS.indexOf(this.place.drawing) + 1) % VIEWS.length]}),
      f: () => this.step({hall: !this.place.hall}),
      h: () => this.hide(this.over.matches(':hover') || !this.said.matches(':hover') ? 'sheet' : 'said'),
      '+': () => this.zoomBy(0.67),
      '-': () => this.zoomBy(1.5),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    if (event.key !== ' ') this.pause();
    act();
  }

  // One layer up or down, one head on or back; at the end it stays.
  go(layers, heads) {
    const {kind, layer, head} = this.place, has = this.maps.kinds[kind], held = (at, count) => Math.min(Math.max(0, at), count - 1);
    const next = {layer: held(layer + layers, has.layers), head: held(head + heads, has.heads), mean: heads ? false : this.place.mean};
    if (next.layer !== layer || next.head !== head || next.mean !== this.place.mean) this.step(next);
  }

  choose(rows, columns) {
    const {queries, keys} = this.maps.kinds[this.place.kind], [query, key] = this.cell();
    const held = (at, count) => Math.min(Math.max(0, at), count - 1);
    this.moved = {row: 0, column: 0};
    this.step({row: held(query + rows, queries.length), column: columns ? held(key + columns, keys.length) : this.place.column});
  }

  play() {
    const on = () => {
      const {kind, layer, head} = this.place, {layers, heads} = this.maps.kinds[kind];
      if (head + 1 < heads) this.step({head: head + 1, mean: false});
      else if (layer + 1 < layers) this.step({layer: layer + 1, head: 0, mean: false});
      else this.pause();
    };
    const {kind, layer, head} = this.place, {layers, heads} = this.maps.kinds[kind];
    this.playing = setInterval(on, BEAT);
    if (layer + 1 === layers && head + 1 === heads) this.step({layer: 0, head: 0, mean: false});
    else on();
  }

  pause() {
    clearInterval(this.playing);
    this.playing = null;
    if (this.buttons) this.buttons.play.textContent = this.words.buttons.play;
  }

  zoomBy(by) {
    const {queries, keys} = this.maps.kinds[this.place.kind], most = Math.max(queries.length, keys.length);
    this.zoom = Math.round(Math.min(Math.max(6, Math.min(most, this.zoom ?? READABLE) * by), most));
    this.redraw();
  }

  // `h`, also while the pointer only rests on the stage and nothing has the focus.
  cover(event) {
    const typing = event.composedPath()[0].closest?.('input, textarea, [contenteditable]');
    if (event.key !== 'h' || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.composedPath().includes(this.node)) return;  // heard already
    if (this.sheet.matches(':hover')) this.hide('sheet');
    else if (this.said.matches(':hover') || this.facts.matches(':hover')) this.hide('said');
  }

  hide(what) {
    this.covered[what] = !this.covered[what];
    const covered = this.covered[what], nodes = what === 'sheet' ? [this.sheet, this.table] : [this.said, this.facts];
    for (const node of nodes) {
      node.classList.toggle('covered', covered);
      node.setAttribute('data-covered', this.words.covered);
    }
    this.aloud.setAttribute('aria-hidden', String(this.covered.said));
    this.controls();
    this.mark(null);
  }

  // The hall: nothing but the picture, over the whole window. Escape or f leaves it.
  enter(hall) {
    if (hall) {
      this.hallSaid ??= make('p', 'where');
      this.hall.append(this.sheet, this.hallSaid);
      this.hall.showModal();
      this.hall.onkeydown ??= (event) => this.key(event);
    } else {
      this.node.insertBefore(this.sheet, this.facts);
      if (this.hall.open) this.hall.close();
    }
    this.sheet.focus();
  }

  spot(event) {
    const {left, top} = this.sheet.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  }

  down(event) {
    this.pause();
    this.sheet.focus({preventScroll: true});
    this.drag = {from: this.spot(event), moved: {...this.moved}, far: false};
  }

  move(event) {
    this.pointer = this.spot(event);
    const [x, y] = this.pointer, {drag} = this;
    if (drag && event.buttons) {
      const [dx, dy] = [x - drag.from[0], y - drag.from[1]];
      drag.far ||= Math.hypot(dx, dy) > 6;
      const map = this.layout?.items.find((item) => item.type === 'map'), {queries, keys} = this.maps.kinds[this.place.kind];
      if (drag.far && map && event.pointerType !== 'touch' && (map.window.rows < queries.length || map.window.columns < keys.length)) {
        this.moved = {row: drag.moved.row - dy / map.tall, column: drag.moved.column - dx / map.across};
        this.redraw();
      }
      return;
    }
    if (this.layout) this.mark(under(this.layout.items, x, y));
  }

  up(event) {
    const {drag} = this, [x, y] = this.spot(event);
    this.drag = null;
    if (!drag || !this.layout || this.covered.sheet) return;
    if (drag.far) {
      const dx = x - drag.from[0];
      if (event.pointerType === 'touch' && Math.abs(dx) > 40) this.go(0, dx < 0 ? 1 : -1);
      return;
    }
    const found = under(this.layout.items, x, y);
    if (!found) return;
    const {tile, query, key} = found, {drawing, also, head} = this.place;
    if (tile && drawing === 'lines' && (this.several || event.shiftKey) && !this.place.mean) {
      const heads = this.laid().includes(tile.head) ? this.laid().filter((each) => each !== tile.head) : [...this.laid(), tile.head];
      if (heads.length) this.step({head: heads.includes(head) ? head : heads[0], also: heads.filter((each) => each !== (heads.includes(head) ? head : heads[0]))});
    } else if (tile) {
      this.step({layer: tile.layer, head: tile.head, mean: false, drawing: drawing === 'lines' ? 'lines' : 'map', also: drawing === 'lines' ? [] : also});
    } else {
      this.moved = {row: 0, column: 0};
      this.step({row: query ?? this.place.row, column: key ?? -1});
    }
  }
}
