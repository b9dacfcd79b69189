// A translation that grows piece by piece: what the decoder has read, the rows of attention that are new, and what
// may come next. Steps happen here; Python is told of the step when the reader rests.
// data: {name, step, told, goes, comes, maps: [{title, keys, side, rows, group, labels}], next: [[{piece, share, drawn,
// chosen, end, never}]], passes: [text], aloud: [text], palette, words}. Steps count from 1.

const REST = 300;  // ms without a step until Python is told
const LONG = 14;  // steps; of more, the maps show a part that follows the newest row
const BEAT = 1100;  // ms a step stays while playing

const node = (tag, name, ...inside) => {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.append(...inside);
  return made;
};

// The colour of a weight from 0 to 1 on the one scale.
function shade(stops, weight) {
  const at = Math.min(Math.max(weight, 0), 1), next = stops.findIndex(([place]) => place >= at), [b, to] = stops[next];
  if (!next) return to;
  const [a, from] = stops[next - 1], part = (at - a) / (b - a);
  const mix = (i) => Math.round(parseInt(from.slice(i, i + 2), 16) * (1 - part) + parseInt(to.slice(i, i + 2), 16) * part);
  return `rgb(${mix(1)}, ${mix(3)}, ${mix(5)})`;
}

const number = (weight) => (weight > 0 && weight < 0.0001 ? '< 0.0001' : weight.toFixed(4));
const percent = (share) => (share > 0 && share < 0.001 ? '< 0.1 %' : `${(100 * share).toFixed(share < 0.1 && share > 0 ? 1 : 0)} %`);

class Film {
  constructor(root) {
    this.root = root;
    this.seq = 0;
    this.step = 1;
  }

  show(data, tell) {
    const fresh = !this.data || data.name !== this.data.name || JSON.stringify(data.palette) !== JSON.stringify(this.data.palette);
    this.data = data;
    this.tell = tell;
    if (fresh) this.build();
    if (data.told >= this.seq || fresh) {  // else an echo: a newer step was made here
      this.seq = Math.max(this.seq, data.told);
      this.step = data.step;
    }
    this.draw();
  }

  build() {
    const {data} = this, {words, palette} = data;
    this.pause();
    const long = data.goes.length > LONG;
    this.film = node('div', long ? 'film long' : 'film');
    this.film.tabIndex = 0;
    this.film.setAttribute('role', 'group');
    this.film.setAttribute('aria-label', words.label);
    for (const [name, colour] of [['--accent', palette.accent], ['--source', palette.source], ['--target', palette.target],
      ['--quiet', palette.quiet], ['--bar', palette.weights[2][1]]]) this.film.style.setProperty(name, colour);

    const button = (text, title, press) => {
      const made = node('button', '', text);
      made.title = title;
      made.onclick = press;
      return made;
    };
    this.back = button('‹', words.back, () => this.go(this.step - 1));
    this.forward = button('›', words.forward, () => this.go(this.step + 1));
    this.playing = button(words.play, words.playTitle, () => (this.timer ? this.pause() : this.play()));
    this.slider = node('input');
    Object.assign(this.slider, {type: 'range', min: 1, max: data.goes.length});
    this.slider.setAttribute('aria-label', words.step);
    this.slider.oninput = () => this.go(Number(this.slider.value));
    this.count = node('span', 'count');
    const bar = node('div', 'bar', this.back, this.playing, this.forward, this.slider, this.count);

    this.said = node('p', 'aloud');
    this.said.setAttribute('aria-live', 'polite');
    this.tokens = data.goes.map((piece) => node('span', 'token', piece));
    this.came = node('span', 'came');
    const line = node('p', 'line', node('span', 'quiet', words.reads), ...this.tokens, node('span', 'quiet', '→'), this.came);

    this.maps = data.maps.map((map) => this.map(map));
    if (long) for (const {scroll} of this.maps) scroll.tabIndex = 0;  // so that keys can scroll it
    this.next = node('ol', 'next');
    const following = node('section', 'following', node('h4', '', words.next), this.next);
    this.film.append(bar, line, this.said, node('div', 'parts', ...this.maps.map((map) => map.section), following));
    this.film.onkeydown = (event) => this.key(event);
    for (const type of ['keyup', 'keypress']) this.film.addEventListener(type, (event) => event.stopPropagation());
    this.root.replaceChildren(this.film);
  }

  // A map as a table. Its rows are there from the start, so that nothing moves, and are shown when they are decoded.
  map({title, keys, side, rows, group, labels}) {
    const {palette} = this.data, table = node('table', 'map'), head = node('tr', '', node('td'));
    const heads = keys.map((key) => {
      const cell = node('th', side, node('span', '', key));
      cell.scope = 'col';
      return cell;
    });
    head.append(...heads);
    const bodies = rows.map((row, t) => {
      const name = node('th', 'target', labels[t]);
      name.scope = 'row';
      const line = node('tr', '', name);
      row.forEach((weight, key) => {
        const cell = node('td', 'cell');
        cell.style.background = shade(palette.weights, weight);
        cell.title = `${labels[t]}, ${keys[key]}: ${number(weight)}`;
        line.append(cell);
      });
      return line;
    });
    const body = node('tbody');
    for (const index of new Set(group)) {  // rows of one word take turns in one place
      const mine = bodies.filter((_row, t) => group[t] === index);
      body.append(...mine);
    }
    table.append(node('thead', '', head), body);
    table.setAttribute('aria-label', title);
    const scroll = node('div', 'scroll', table);
    return {section: node('section', 'part', node('h4', 'quiet', title), scroll), scroll, bodies, heads, group, rows};
  }

  draw() {
    const {data} = this, {words} = data, last = data.goes.length, at = this.step - 1;
    this.back.disabled = this.step <= 1;
    this.forward.disabled = this.step >= last;
    this.slider.value = this.step;
    this.count.textContent = data.passes[at];
    this.said.textContent = data.aloud[at];
    this.tokens.forEach((token, t) => {
      token.hidden = t > at;
      token.classList.toggle('new', t === at);
    });
    this.came.textContent = data.comes[at];
    for (const {scroll, bodies, heads, group, rows} of this.maps) {
      bodies.forEach((row, t) => {
        const newer = group.findIndex((index, u) => u > t && u <= at && index === group[t]) >= 0;
        const waits = group.findIndex((index, u) => u < t && index === group[t]) >= 0;  // a place is kept for its word
        row.className = t > at ? (waits ? 'gone' : 'later') : newer ? 'gone' : t === at ? 'new' : '';
        row.setAttribute('aria-hidden', String(row.className === 'later'));
      });
      heads.forEach((head, key) => head.classList.toggle('later', rows[at].length <= key));
      // Where only a part can be seen: the newest row, and of it the newest key or the one that is read most.
      const row = bodies[at], grows = heads.length > rows[0].length;
      const cell = row.cells[grows ? rows[at].length : 1 + rows[at].indexOf(Math.max(...rows[at]))];
      scroll.scrollTop = row.offsetTop + row.offsetHeight - scroll.clientHeight + 8;
      scroll.scrollLeft = cell.offsetLeft + cell.offsetWidth - scroll.clientWidth + (grows ? 8 : 60);
    }
    this.next.replaceChildren(...data.next[at].map((each) => {
      const bar = node('span', 'bar2'), drawn = node('span', 'drawn');
      bar.style.width = `${100 * each.share}%`;
      const track = node('span', 'track', bar);
      if (each.drawn !== null) {
        drawn.style.width = `${100 * each.drawn}%`;
        drawn.classList.toggle('none', each.drawn === 0);
        track.append(drawn);
      }
      const line = node('li', [each.chosen && 'chosen', each.end && 'end', each.never && 'never'].filter(Boolean).join(' '), node('span', 'piece', each.piece), track,
        node('span', 'share', percent(each.share)));
      if (each.drawn !== null) line.append(node('span', 'share two', percent(each.drawn)));
      line.title = each.never ? words.never : each.end ? words.end : '';
      if (each.chosen) line.setAttribute('aria-current', 'true');
      return line;
    }));
  }

  go(step) {
    const to = Math.min(Math.max(1, step), this.data.goes.length);
    if (to === this.step) return;
    this.step = to;
    this.seq += 1;
    this.draw();
    clearTimeout(this.rest);
    if (!this.timer) this.rest = setTimeout(() => this.send(), REST);
  }

  send() {
    const url = new URL(location.href);
    if (this.step === 1) url.searchParams.delete('dec_step');
    else url.searchParams.set('dec_step', this.step);
    history.replaceState(history.state, '', url);
    this.tell('at', {step: this.step, seq: this.seq});
  }

  play() {
    const on = () => (this.step < this.data.goes.length ? this.go(this.step + 1) : this.pause(true));
    this.timer = setInterval(on, BEAT);
    this.playing.textContent = this.data.words.pause;
    if (this.step === this.data.goes.length) this.go(1);
    else on();
  }

  pause(told = true) {
    if (!this.timer) return;
    clearInterval(this.timer);
    this.timer = null;
    this.playing.textContent = this.data.words.play;
    if (told) this.send();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    event.stopPropagation();
    const moves = {ArrowLeft: -1, ArrowUp: -1, PageUp: -1, ArrowRight: 1, ArrowDown: 1, PageDown: 1};
    const ends = {Home: 1, End: this.data.goes.length};
    if (event.key in moves) this.go(this.step + moves[event.key]);
    else if (event.key in ends) this.go(ends[event.key]);
    else if (event.key === ' ' && event.target.tagName !== 'BUTTON') this.timer ? this.pause() : this.play();
    else return;
    event.preventDefault();
  }

  leave() {
    setTimeout(() => {
      if (this.root.isConnected) return;
      this.pause(false);
      clearTimeout(this.rest);
    });
  }
}

const films = new WeakMap();

export default function ({parentElement, data, setStateValue}) {
  const root = parentElement.querySelector('.root');
  if (!films.has(root)) films.set(root, new Film(root));
  const film = films.get(root);
  film.show(data, setStateValue);
  return () => film.leave();
}
