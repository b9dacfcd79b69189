// Drawing: what a map, its small copies and its lines look like. Nothing here knows keys, clicks or Python.

const GAP = 3;  // px between small maps
const THOUSANDS = 1000;  // lines of one colour; more are drawn pixel by pixel

// 256 colours between the stops [[0, '#rrggbb'], ...], as pixels of an ImageData.
function shades(stops) {
  const rgb = stops.map(([at, hex]) => [at, ...[1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16))]);
  return Uint32Array.from({length: 256}, (_, i) => {
    const at = i / 255, after = Math.max(1, rgb.findIndex(([stop]) => stop >= at));
    const [a, b] = [rgb[after - 1], rgb[after]], share = (at - a[0]) / (b[0] - a[0]);
    const [r, g, blue] = [1, 2, 3].map((j) => Math.round(a[j] + share * (b[j] - a[j])));
    return (255 << 24 | blue << 16 | g << 8 | r) >>> 0;
  });
}

class Paint {
  constructor(ctx, palette, font) {
    Object.assign(this, {ctx, palette, font});
    this.shades = {weights: shades(palette.weights), signed: shades(palette.signed)};
    this.strips = new Map();
    this.outlines = new Map();
    this.copies = new Map();
    this.hatch = this.pattern();
  }

  pattern() {
    const tile = document.createElement('canvas');
    tile.width = tile.height = 8;
    const ctx = tile.getContext('2d');
    ctx.fillStyle = this.palette.blocked;
    ctx.fillRect(0, 0, 8, 8);
    ctx.strokeStyle = this.palette.hatch;
    ctx.beginPath();
    for (const at of [-8, 0, 8]) { ctx.moveTo(at - 1, 9); ctx.lineTo(at + 9, -1); }
    ctx.stroke();
    return this.ctx.createPattern(tile, 'repeat');
  }

  // All heads of a layer as pixels, one beside the other: stepping through heads only copies.
  strip(maps, {set, kind, layer}) {
    const key = `${maps.name}.${set}.${kind}.${layer}`;
    let strip = this.strips.get(key);
    if (!strip) {
      const {heads} = maps.kinds[kind];
      strip = this.pixels(maps, Array.from({length: heads}, (_, head) => ({set, kind, layer, head})));
      if (this.strips.size * strip.width * strip.height > KEPT) this.strips.clear();
      this.strips.set(key, strip);
    }
    return strip;
  }

  pixels(maps, places) {
    const {queries, keys} = maps.kinds[places[0].kind], [rows, columns] = [queries.length, keys.length];
    const image = new ImageData(columns * places.length, rows), pixels = new Uint32Array(image.data.buffer);
    const signed = places[0].set === DIFFERENCE, colours = signed ? this.shades.signed : this.shades.weights;
    const [slope, lift] = signed ? [127.5, 128] : [255, 0.5];
    places.forEach((place, index) => {
      const weights = maps.weights(place);
      for (let row = 0, i = 0; row < rows; row += 1) {
        let at = row * columns * places.length + index * columns;
        for (let column = 0; column < columns; column += 1, i += 1, at += 1) {
          pixels[at] = colours[(weights[i] * slope + lift) & 255];
        }
      }
    });
    const canvas = document.createElement('canvas');
    canvas.width = image.width;
    canvas.height = rows;
    canvas.getContext('2d').putImageData(image, 0, 0);
    return canvas;
  }

  // What `draw` paints inside a box, painted once for equal `what`, box and resolution; one picture a `slot` is kept.
  kept(slot, what, box, draw) {
    const ratio = this.ctx.getTransform().a, [x, y] = [box.x, box.y].map((at) => Math.round(at * ratio));
    const key = [...what, x, y, box.w, box.h, ratio].join(), {ctx} = this;
    let copy = this.copies.get(slot);
    if (copy?.key !== key) {
      const canvas = document.createElement('canvas');
      Object.assign(canvas, {width: Math.ceil(box.w * ratio) + 1, height: Math.ceil(box.h * ratio) + 1});
      this.ctx = canvas.getContext('2d');
      this.ctx.setTransform(ratio, 0, 0, ratio, -x, -y);
      draw();
      this.ctx = ctx;
      copy = {key, canvas};
      this.copies.set(slot, copy);
    }
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(copy.canvas, x / ratio, y / ratio, copy.canvas.width / ratio, copy.canvas.height / ratio);
  }

  // The blocked cells of a place as one path, a cell being 1 x 1.
  blocked(maps, place) {
    if (place.set === DIFFERENCE) return null;
    const key = `${maps.name}.${place.set}.${place.kind}.${maps.mask(place)}`;
    if (!this.outlines.has(key)) {
      const {queries, keys} = maps.kinds[place.kind], codes = maps.codes(place), path = new Path2D();
      let any = false;
      for (let row = 0; row < queries.length; row += 1) {
        for (let from = 0; from < keys.length; from += 1) {
          let to = from;
          while (to < keys.length && codes[row * keys.length + to]) to += 1;
          if (to > from) { path.rect(from, row, to - from, 1); any = true; from = to; }
        }
      }
      if (this.outlines.size > 64) this.outlines.clear();
      this.outlines.set(key, any ? path : null);
    }
    return this.outlines.get(key);
  }

  // The cells of `window` {row, column, rows, columns} of a place, into a box of the canvas.
  cells(maps, place, box, window) {
    const {ctx} = this, {keys} = maps.kinds[place.kind];
    const strip = place.head === null ? this.pixels(maps, [place]) : this.strip(maps, place);
    const [across, down] = [box.w / window.columns, box.h / window.rows];
    ctx.imageSmoothingEnabled = across < 1;
    ctx.imageSmoothingQuality = 'medium';
    const left = (place.head ?? 0) * keys.length + window.column;
    ctx.drawImage(strip, left, window.row, window.columns, window.rows, box.x, box.y, box.w, box.h);
    const path = this.blocked(maps, place);
    if (path) {
      ctx.save();
      ctx.beginPath();
      ctx.rect(box.x, box.y, box.w, box.h);
      ctx.clip();
      const placed = new Path2D();
      placed.addPath(path, new DOMMatrix([across, 0, 0, down, box.x - window.column * across, box.y - window.row * down]));
      ctx.fillStyle = this.hatch;
      ctx.fill(placed);
      ctx.restore();
    }
  }

  // Lines of the ground between the cells, where there is room for them.
  grid(box, window) {
    const {ctx} = this, [across, down] = [box.w / window.columns, box.h / window.rows];
    if (Math.min(across, down) < 7) return;
    ctx.fillStyle = this.palette.ground;
    for (let i = 1; i < window.columns; i += 1) ctx.fillRect(box.x + i * across - 0.5, box.y, 1, box.h);
    for (let i = 1; i < window.rows; i += 1) ctx.fillRect(box.x, box.y + i * down - 0.5, box.w, 1);
  }

  frame(box, colour, width) {
    this.ctx.strokeStyle = colour;
    this.ctx.lineWidth = width;
    this.ctx.strokeRect(box.x, box.y, box.w, box.h);
  }

  text(text, x, y, {size = 14, colour = this.palette.text, align = 'left', bold = false, angle = 0, room = Infinity} = {}) {
    const {ctx} = this;
    this.type(size, bold);
    ctx.fillStyle = colour;
    ctx.textAlign = align;
    ctx.textBaseline = 'middle';
    const shown = this.fit(text, room);
    if (!angle) { ctx.fillText(shown, x, y); return; }
    ctx.save();
    ctx.translate(x, y);
    ctx.rotate(angle);
    ctx.fillText(shown, 0, 0);
    ctx.restore();
  }

  type(size, bold = false) {
    this.ctx.font = `${bold ? '700 ' : ''}${size}px ${this.font}`;
  }

  width(text, size, bold = false) {
    this.type(size, bold);
    return this.ctx.measureText(text).width;
  }

  // `text`, or as much of its beginning as fits.
  fit(text, room) {
    if (this.ctx.measureText(text).width <= room) return text;
    const letters = [...text];
    while (letters.length > 1 && this.ctx.measureText(letters.join('') + '…').width > room) letters.pop();
    return letters.join('') + '…';
  }

  legend(left, y, wide, signed) {
    const {ctx} = this, x = left + 5, ramp = ctx.createLinearGradient(x, 0, x + wide, 0);
    for (const [at, colour] of signed ? this.palette.signed : this.palette.weights) ramp.addColorStop(at, colour);
    ctx.fillStyle = ramp;
    ctx.fillRect(x, y, wide, 10);
    for (const at of [0, 0.5, 1]) {
      const said = signed ? 2 * at - 1 : at;
      this.text(String(said).replace('-', '−'), x + at * wide, y + 21, {size: 13, colour: this.palette.quiet, align: 'center'});
    }
  }

  // Lines from queries to keys, those that `only(query, key)` wants, thicker and darker with their weight;
  // `ends(query, key)` gives [y left, y right].
  lines(weights, columns, {from, to, ends, faint, colour, dash = [], only = () => true}) {
    const {ctx} = this, steps = 10, hair = 1 / devicePixelRatio, found = Array.from({length: steps}, () => []);
    for (let query = 0, i = 0; i < weights.length; query += 1) {
      for (let key = 0; key < columns; key += 1, i += 1) {
        if (weights[i] < faint || weights[i] === 0 || !only(query, key)) continue;
        found[Math.min(steps - 1, Math.floor(weights[i] * steps))].push(ends(query, key));
      }
    }
    Object.assign(ctx, {strokeStyle: colour, lineWidth: 0.99 * hair});
    ctx.setLineDash(dash);
    found.forEach((lines, step) => {
      const alpha = (step + 1) / steps;
      if (lines.length > THOUSANDS && !dash.length) { this.haze(lines, from, to, colour, alpha); return; }
      // A line is as many hairs as it is wide: a browser draws those several times faster than wide lines.
      const hairs = Math.max(1, Math.round((0.7 + 4 * (step + 0.5) / steps) / hair));
      ctx.globalAlpha = alpha;
      let row = null;  // thin lines of one row are one path; lines that cross in a path would make it slow
      for (const [y1, y2] of lines) {
        if (hairs > 1 || y1 !== row) {
          if (row !== null) ctx.stroke();
          ctx.beginPath();
          row = y1;
        }
        for (let i = 0, by = -hair * (hairs - 1) / 2; i < hairs; i += 1, by += hair) {
          ctx.moveTo(from, y1 + by);
          ctx.lineTo(to, y2 + by);
        }
      }
      if (row !== null) ctx.stroke();
    });
    ctx.globalAlpha = 1;
    ctx.setLineDash([]);
  }

  // Thin lines by the thousand: the ink that falls on each pixel is summed here, several times faster than a browser
  // strokes as many. `lines` are [y left, y right], `alpha` is that of one line.
  haze(lines, from, to, colour, alpha) {
    const {ctx} = this, ratio = ctx.getTransform().a;
    const top = lines.reduce((y, line) => Math.min(y, ...line), Infinity) - 1, bottom = lines.reduce((y, line) => Math.max(y, ...line), 0) + 2;
    const across = Math.round((to - from) * ratio), wide = across + 1, tall = Math.ceil((bottom - top) * ratio) + 1;
    const sheet = this.sheet ??= document.createElement('canvas'), size = wide * tall;
    if (sheet.width !== wide || sheet.height !== tall) {
      Object.assign(sheet, {width: wide, height: tall});
      this.ink = new Float32Array(size);
      this.image = new ImageData(wide, tall);
    }
    const {ink, image} = this, pixels = new Uint32Array(image.data.buffer);
    ink.fill(0);
    for (const [left, right] of lines) {
      const y1 = (left - top) * ratio, down = (right - left) * ratio;
      const flat = Math.abs(down) <= across, count = Math.ceil(flat ? across : Math.abs(down)) || 1;
      const dx = across / count, dy = down / count;
      let x = 0, y = y1;
      if (flat) {
        for (let j = 0; j < count; j += 1, y += dy) {
          const row = y | 0, at = row * wide + j, part = y - row;
          ink[at] += 1 - part;
          ink[at + wide] += part;
        }
      } else {
        const step = dy > 0 ? wide : -wide;
        for (let j = 0, line = (y | 0) * wide; j < count; j += 1, x += dx, line += step) {
          const column = x | 0, part = x - column;
          ink[line + column] += 1 - part;
          ink[line + column + 1] += part;
        }
      }
    }
    const fine = 16, shades = Uint8Array.from({length: 64 * fine}, (_, i) => Math.round(255 * (1 - (1 - alpha) ** (i / fine))));
    const [red, green, blue] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)), tint = blue << 16 | green << 8 | red;
    const most = shades.length - 1;
    for (let i = 0; i < size; i += 1) {
      const amount = ink[i];
      pixels[i] = amount === 0 ? 0 : shades[Math.min(most, amount * fine + 0.5 | 0)] << 24 | tint;
    }
    sheet.getContext('2d').putImageData(image, 0, 0);
    ctx.drawImage(sheet, from, top, wide / ratio, tall / ratio);
  }
}
