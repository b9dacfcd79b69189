// The stage's pictures: base and marks on two canvases, in the layout of layout.js, and what is said of them.

const DASHES = [[], [7, 4], [2, 3], [11, 3, 2, 3]];

const make = (tag, name, text) => {
  const node = document.createElement(tag);
  if (name) node.className = name;
  if (text) node.textContent = text;
  return node;
};

class Drawing {
  redraw() {
    this.frame ??= requestAnimationFrame(() => { this.frame = null; this.draw(); });
  }

  at(set = 0) {
    const {kind, layer, head, mean} = this.place;
    return {set, kind, layer, head: mean ? null : head};
  }

  // The chosen [query, key], inside this sentence; the row's favourite where no key was chosen.
  cell() {
    const {kind, row, column} = this.place, {queries, keys} = this.maps.kinds[kind], query = Math.min(row, queries.length - 1);
    const chosen = column >= 0 && column < keys.length;
    return [query, chosen || !this.maps.has(kind, this.place.layer) ? Math.max(0, column) : this.maps.favourite(this.at(), query)];
  }

  draw() {
    if (!this.maps) return;
    const lack = this.missing()?.join();
    if (lack) {  // the old picture stays
      this.node.setAttribute('aria-busy', 'true');
      if (lack !== this.lack || performance.now() - this.lackAt > LOST) {
        Object.assign(this, {lack, lackAt: performance.now()});
        this.lacks('want', this.missing());
      }
      return;
    }
    this.node.setAttribute('aria-busy', 'false');
    const hall = this.place.hall;
    if (hall !== (this.sheet.parentNode === this.hall)) this.enter(hall);  // Escape has closed it already
    const width = hall ? innerWidth - 48 : this.root.clientWidth;
    if (!width) return;
    this.layout = arrange(this, width, this.place);
    const height = hall ? this.layout.height : this.height(width);
    for (const canvas of [this.base, this.over]) {
      const [w, h] = [Math.round(width * devicePixelRatio), Math.round(height * devicePixelRatio)];
      if (canvas.width !== w || canvas.height !== h) {
        Object.assign(canvas, {width: w, height: h});
        Object.assign(canvas.style, {width: `${width}px`, height: `${height}px`});
      }
      const ctx = canvas.getContext('2d');
      ctx.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
      ctx.clearRect(0, 0, width, height);
    }
    for (const item of this.layout.items) {
      if (item.type === 'map') this.drawMap(item);
      else if (item.type === 'tiles') this.drawTiles(item);
      else this.drawLines(item);
      if (item.title) this.paint.text(item.title.text, item.title.x, item.title.y, {size: 17, bold: true});
    }
    this.mark(this.hover);
    this.say();
  }

  // As tall as the tallest kind, so that nothing below moves when another kind is chosen.
  height(width) {
    const {drawing} = this.place, key = [width, drawing, this.maps.name, this.zoom].join();
    if (this.tallKey !== key) {
      this.tallKey = key;
      this.tall = Math.max(...Object.keys(this.maps.kinds).map((kind) => arrange(this, width, {...this.place, kind}).height));
    }
    return Math.max(this.tall, this.layout.height);
  }

  drawMap(item) {
    const {paint, maps, words} = this, {palette} = paint, place = this.at(item.set), {queries, keys, out, sides} = maps.kinds[place.kind];
    const [query, key] = this.cell(), {box, window, across, tall} = item;
    paint.cells(maps, place, box, window);
    paint.grid(box, window);
    const [rowColour, keyColour] = sides.map((side) => palette[side]);
    const sparse = (at, first, size, room) => (at - first) % Math.ceil((size + 1) / room) === 0;  // labels that do not overlap
    for (let row = window.row; row < window.row + window.rows; row += 1) {
      if (row !== query && !sparse(row, window.row, item.rows.size, tall)) continue;
      const y = box.y + (row - window.row + 0.5) * tall, {size} = item.rows, room = item.rows.width - 8;
      const gap = out && item.rows.out ? ` → ${out[row]}` : '', left = room - paint.width(queries[row], size, row === query);
      const tail = gap ? Math.min(paint.width(gap, size), Math.max(left, room * 0.45)) : 0;
      if (gap) paint.text(gap, box.x - 7, y, {size, align: 'right', colour: palette.quiet, room: tail + 1});
      paint.text(queries[row], box.x - 7 - tail, y,
        {size, align: 'right', colour: rowColour, bold: row === query, room: room - tail + 1});
      if (maps.empty(place, row) && item.set !== DIFFERENCE) {
        paint.text(words.nothingAllowed, box.x + box.w / 2, y, {size: 13, align: 'center', colour: palette.text});
      }
    }
    for (let column = window.column; column < window.column + window.columns; column += 1) {
      const x = box.x + (column - window.column + 0.5) * across, {size, angle, room} = item.columns;
      if (angle && column !== key && !sparse(column, window.column, size, across)) continue;
      paint.text(keys[column], x, box.y - (angle ? 6 : size / 2 + 4),
        {size, angle, room, align: angle ? 'left' : 'center', colour: keyColour, bold: column === key});
    }
    if (!item.hall) this.titles(item);
    if (this.data.values) this.numbers(item, place);
    this.ends(item, place);
    if (query >= window.row && query < window.row + window.rows) {
      const y = box.y + (query - window.row) * tall;
      paint.frame({x: box.x, y, w: box.w, h: tall}, palette.accent, 1.5);
      if (key >= window.column && key < window.column + window.columns) {
        paint.frame({x: box.x + (key - window.column) * across, y, w: across, h: tall}, palette.accent, 3);
      }
    }
    if (!item.hall) paint.legend(box.x, box.y + box.h + 10, Math.min(180, box.w), item.set === DIFFERENCE);
  }

  titles(item) {
    const {paint, words} = this, {palette} = paint, {box} = item, {names, out} = this.maps.kinds[this.place.kind], quiet = {size: 14, colour: palette.quiet};
    paint.text(fill(words.asked, {side: names[1]}), box.x, item.y + 8, {...quiet, room: item.w - (box.x - item.x)});
    if (!item.full) return;
    const asks = fill(words.asks, {side: names[0]}) + (out ? words.goes : '');
    paint.text(asks, item.x + 7, box.y + box.h / 2, {...quiet, align: 'center', angle: -Math.PI / 2, room: Math.max(box.h, 240)});
  }

  numbers(item, place) {
    const {paint, maps} = this, {keys} = maps.kinds[place.kind], weights = maps.weights(place), codes = maps.codes(place);
    const {box, window, across, tall} = item, size = Math.min(15, Math.floor(across / 2.6), Math.floor(tall * 0.8));
    if (size < 7) return;
    for (let row = window.row; row < window.row + window.rows; row += 1) {
      for (let column = window.column; column < window.column + window.columns; column += 1) {
        const at = row * keys.length + column, value = weights[at];
        if (codes[at]) continue;
        const strong = Math.abs(value) > 0.55, said = value.toFixed(2).replace('-', '−');
        paint.text(said, box.x + (column - window.column + 0.5) * across, box.y + (row - window.row + 0.5) * tall,
          {size, align: 'center', colour: strong ? paint.palette.ground : paint.palette.text});
      }
    }
  }

  // A bar at each row's end, as long as the row's sum and so always full.
  ends(item, place) {
    if (item.set === DIFFERENCE) return;
    const {ctx, palette} = this.paint, {maps} = this, {keys} = maps.kinds[place.kind], weights = maps.weights(place);
    const {box, window, tall} = item, x = box.x + box.w + 5, thick = Math.min(10, tall * 0.4);
    for (let row = window.row; row < window.row + window.rows; row += 1) {
      let sum = 0;
      for (let key = 0; key < keys.length; key += 1) sum += weights[row * keys.length + key];
      const y = box.y + (row - window.row + 0.5) * tall - thick / 2;
      ctx.fillStyle = palette.blocked;
      ctx.fillRect(x, y, 16, thick);
      ctx.fillStyle = palette.hatch;
      ctx.fillRect(x, y, 16 * Math.min(1, sum), thick);
    }
  }

  drawTiles(item) {
    const {paint, maps, place} = this, {palette} = paint, {queries, keys} = maps.kinds[place.kind];
    const whole = {row: 0, column: 0, rows: queries.length, columns: keys.length};
    const laid = place.drawing === 'lines' && place.also.length > 0;
    // The small maps stay the same from head to head: they are painted once and copied.
    paint.kept(item.set, [maps.name, place.kind, item.tiles[0].layer, item.many], item.box, () => {
      for (const tile of item.tiles) {
        paint.cells(maps, {set: item.set, kind: place.kind, layer: tile.layer, head: tile.head}, tile, whole);
      }
    });
    for (const tile of item.tiles) {
      const chosen = tile.layer === place.layer && tile.head === place.head && !place.mean;
      const colour = laid && this.laid().includes(tile.head) ? this.overlay(tile.head).colour : chosen ? palette.accent : palette.hatch;
      paint.frame(tile, colour, colour === palette.hatch ? 1 : 3);
      if (!item.many) {
        paint.text(String(tile.head + 1), tile.x, tile.y - 10, {size: 15, bold: chosen, colour: chosen ? palette.accent : palette.quiet});
      }
    }
    if (item.many) {
      const {layers, heads} = maps.kinds[place.kind], [first] = item.tiles;
      for (let head = 0; head < heads; head += 1) {
        const tile = item.tiles[head];
        paint.text(String(head + 1), tile.x + tile.w / 2, item.y + 12, {size: 15, align: 'center', colour: head === place.head ? palette.accent : palette.quiet, bold: head === place.head});
      }
      for (let layer = 0; layer < layers; layer += 1) {
        const tile = item.tiles[layer * heads];
        paint.text(String(layer + 1), first.x - 8, tile.y + tile.h / 2, {size: 15, align: 'right', colour: layer === place.layer ? palette.accent : palette.quiet, bold: layer === place.layer});
      }
    }
    paint.legend(item.box.x, item.box.y + item.box.h + 6, 180, item.set === DIFFERENCE);
  }

  // The heads whose lines are drawn: the chosen one, and those laid over it.
  laid() {
    const {head, also, mean} = this.place;
    return mean ? [null] : [...new Set([head, ...also])].sort((a, b) => a - b);
  }

  overlay(head) {
    const {overlay} = this.paint.palette;
    const many = this.laid().length > DASHES.length;  // then dashes tell no two apart, and dashed lines take twice as long
    return {colour: overlay[head % overlay.length], dash: many ? [] : DASHES[head % DASHES.length]};
  }

  drawLines(item, hover = null, paint = this.paint) {
    const {maps, words, place} = this, {palette} = paint, {queries, keys, sides} = maps.kinds[place.kind];
    const [chosen] = this.cell(), heads = this.laid(), faint = place.faint / 100, {box, size} = item;
    const only = (query, key) => (hover?.query ?? query) === query && (hover?.key ?? key) === key;
    const geometry = {from: box.x + 4, to: box.x + box.w - 4, faint, only, ends: (query, key) => [item.left[query], item.right[key]]};
    heads.forEach((head, index) => {
      const weights = maps.weights({...this.at(item.set), head});
      if (heads.length > 1) {
        const aside = 3 * (index - (heads.length - 1) / 2);  // lines of two heads between the same pieces lie side by side
        const ends = (query, key) => [item.left[query] + aside, item.right[key] + aside];
        paint.lines(weights, keys.length, {...geometry, ends, ...this.overlay(head)});
      } else {
        const others = (query, key) => query !== chosen && only(query, key);
        paint.lines(weights, keys.length, {...geometry, colour: palette.weights[3][1], only: others});
        paint.lines(weights, keys.length, {...geometry, colour: palette.accent, only: (query, key) => query === chosen && only(query, key)});
      }
    });
    if (heads.length > 1) heads.forEach((head, index) => this.tag(item, head, (index + 1) / (heads.length + 1), hover?.query ?? chosen));
    if (hover) return;
    queries.forEach((piece, query) => paint.text(piece, box.x - 6, item.left[query],
      {size, align: 'right', colour: palette[sides[0]], bold: query === chosen, room: item.widths[0] - 8}));
    keys.forEach((piece, key) => paint.text(piece, box.x + box.w + 6, item.right[key], {size, colour: palette[sides[1]], room: item.widths[1] - 8}));
    const quiet = {size: 14, colour: palette.quiet};
    paint.text(maps.kinds[place.kind].out ? words.goesIn : words.queries, item.x, item.y + 10, quiet);
    paint.text(words.keys, box.x + box.w + item.widths[1], item.y + 10, {...quiet, align: 'right'});
  }

  // The number of a head on its heaviest line of a row, so that heads differ by more than their colour.
  tag(item, head, share, query) {
    const {paint, maps} = this, {keys} = maps.kinds[this.place.kind], key = maps.favourite({...this.at(item.set), head}, query);
    const {box} = item;
    const [x, y] = [box.x + box.w * share, item.left[query] + (item.right[key] - item.left[query]) * share];
    paint.ctx.fillStyle = paint.palette.ground;
    paint.ctx.beginPath();
    paint.ctx.arc(x, y, 11, 0, 2 * Math.PI);
    paint.ctx.fill();
    paint.text(String(head + 1), x, y, {size: 14, bold: true, align: 'center', colour: this.overlay(head).colour});
  }

  // Rows and columns under the pointer, in every map at once; what is said of the cell stands beside the pointer.
  mark(hover) {
    this.hover = hover;
    const paint = this.paint?.over, [x, y] = this.pointer ?? [0, 0];
    if (!paint || !this.layout) return;
    paint.ctx.clearRect(0, 0, this.over.width, this.over.height);
    this.tip.hidden = true;
    if (!hover || this.covered.sheet) return;
    const {query, key, item, tile} = hover, {maps, place} = this, {keys, queries} = maps.kinds[place.kind];
    const self = place.kind !== 'cross' && queries.length === keys.length && (query === undefined || key === undefined);
    for (const each of this.layout.items) {
      if (each.type === 'map') {
        const {box, window, across, tall} = each;
        const band = (row, column) => {
          if (row !== undefined && row >= window.row && row < window.row + window.rows) {
            paint.frame({x: box.x, y: box.y + (row - window.row) * tall, w: box.w, h: tall}, paint.palette.text, 1.5);
          }
          if (column !== undefined && column >= window.column && column < window.column + window.columns) {
            paint.frame({x: box.x + (column - window.column) * across, y: box.y, w: across, h: box.h}, paint.palette.text, 1.5);
          }
        };
        band(query, key);
        if (self) band(key, query);  // the same piece on the other axis
      } else if (each.type === 'lines' && (query ?? key) !== undefined) {
        paint.ctx.globalAlpha = 0.85;
        paint.ctx.fillStyle = paint.palette.ground;
        paint.ctx.fillRect(each.box.x, each.box.y, each.box.w, each.box.h);
        paint.ctx.globalAlpha = 1;
        this.drawLines(each, {query, key}, paint);
      }
    }
    const said = tile ? this.tileSaid(item, tile)
      : query !== undefined && key !== undefined ? cellSaid(this, this.at(item.set), query, key)
      : query !== undefined ? [queries[query], fill(this.words.reads, this.best(this.at(item.set === DIFFERENCE ? 0 : item.set), query))] : [keys[key]];
    this.tip.replaceChildren(...said.map((line, i) => make('div', i ? 'strong' : '', line)));
    this.tip.hidden = false;
    const room = this.sheet.clientWidth - this.tip.offsetWidth - 4;
    Object.assign(this.tip.style, {left: `${Math.max(0, Math.min(x + 14, room))}px`, top: `${y + 18}px`});
  }

  best(place, query) {
    const {maps} = this, {keys} = maps.kinds[place.kind], key = maps.favourite(place, query);
    return {key: keys[key], weight: number(this.words, maps.weights(place)[query * keys.length + key])};
  }

  tileSaid(item, tile) {
    const {maps, words} = this, {kind} = this.place, {queries, keys} = maps.kinds[kind];
    const place = {set: item.set, kind, layer: tile.layer, head: tile.head}, weights = maps.weights(place);
    let best = 0;
    weights.forEach((weight, i) => { if (weight > weights[best]) best = i; });
    const query = queries[Math.floor(best / keys.length)], key = keys[best % keys.length];
    const name = nameOf(this, place), title = name[0].toUpperCase() + name.slice(1);
    if (item.set === DIFFERENCE) return [title];
    return [title, fill(words.sharpest, {query, key, share: percent(words, weights[best])})];
  }

  // --- what is said ---------------------------------------------------------------------------------------------

  say() {
    const {words, place, maps} = this, [query, key] = this.cell(), set = (node, text) => { if (node.textContent !== text) node.textContent = text; };
    const {queries, keys} = maps.kinds[place.kind];
    const lines = [];
    if (maps.sets === 1) {
      set(this.aloud, aloud(this, this.at(), query, key));
      lines.push(facts(this, this.at()), ...rests(this, this.at()));
    } else {
      const [before, after] = [0, 1].map((s) => number(words, maps.weights(this.at(s))[query * keys.length + key]));
      const name = nameOf(this, this.at()), head = name[0].toUpperCase() + name.slice(1);
      set(this.aloud, fill(words.change, {head, query: queries[query], key: keys[key], before, after}));
      const most = this.maps.weights(this.at(DIFFERENCE)).reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      lines.push(fill(words.differs, {most: number(words, most)}));
      for (const s of [0, 1]) lines.push(`${words.panels[s]}: ${facts(this, this.at(s))}`);
    }
    if (place.drawing === 'lines') {
      const heads = this.laid(), each = heads.length > 1 && heads.length <= DASHES.length;
      for (const group of each ? heads.map((head) => [head]) : [heads]) {
        const found = group.map((head) => hidden(maps.weights({...this.at(), head}), place.faint / 100));
        const share = percent(words, found.reduce((sum, one) => sum + one, 0) / found.length);  // rows sum to 1 in each
        const name = each ? nameOf(this, {...this.at(), head: group[0]}) + ': ' : '';
        if (place.faint) lines.push(name + fill(words.hiddenShare, {faint: `${place.faint} %`, share}));
      }
    }
    const most = Math.max(queries.length, keys.length), shown = this.zoom ?? READABLE;
    if (place.drawing === 'map' && most > shown) lines.push(fill(words.window, {shown: Math.min(shown, most), all: most}));
    if (place.mean) lines.push(words.meanNote);
    const said = lines.join('\n');
    if (said !== this.factsSaid) {
      this.factsSaid = said;
      this.facts.replaceChildren(...lines.map((line) => make('p', '', line)));
    }
    const kind = words.kinds[place.kind], name = nameOf(this, this.at());
    const label = fill(words.what, {kind: kind[0].toUpperCase() + kind.slice(1), name});
    this.sheet.setAttribute('aria-label', `${label} ${words.keysHelp}`);
    if (place.hall) set(this.hallSaid, label);
    this.tabulate();
  }

  // The same numbers as a table, for readers who do not see the map; made when it is opened.
  tabulate() {
    const {words, table, maps} = this;
    if (!table.firstChild) table.append(make('summary', '', words.table), make('div', 'scroll'));
    if (!table.open || !maps) return;
    const place = this.at(maps.sets === 2 ? 1 : 0), {queries, keys, out} = maps.kinds[place.kind];
    const key = JSON.stringify([maps.name, place]);
    if (this.tabled === key) return;
    this.tabled = key;
    const grid = make('table'), weights = maps.weights(place), codes = maps.codes(place), head = grid.createTHead().insertRow();
    grid.createCaption().textContent = this.sheet.getAttribute('aria-label').split('.')[0] + (maps.sets === 2 ? ` (${words.panels[1]})` : '');
    head.append(make('td'), ...keys.map((piece) => Object.assign(make('th', '', piece), {scope: 'col'})));
    const body = grid.createTBody();
    queries.forEach((piece, query) => {
      const row = body.insertRow();
      row.append(Object.assign(make('th', '', piece + (out ? ' → ' + out[query] : '')), {scope: 'row'}));
      keys.forEach((_, column) => {
        const at = query * keys.length + column;
        row.insertCell().textContent = codes[at] ? words.reasons[codes[at]] : number(words, weights[at]);
      });
    });
    table.lastChild.replaceChildren(grid);
  }
}
