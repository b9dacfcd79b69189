// Where things lie: boxes in px for the maps, small maps and lines of a view. Pure: it measures, but draws nothing.
// An item is {type: 'map' | 'tiles' | 'lines', set, x, y, w, h, ...}; its cells fill `box`.

const READABLE = 40;  // pieces along an axis that can still be read: beyond, a window is shown and moved
const BESIDE = 16;  // columns of a map that leave room for small maps beside it
const NARROW = 700;  // px; below, everything stands one under the other
const ENDS = 26;  // px for the bars of the row sums

function arrange(stage, width, place) {
  const sets = stage.maps.sets === 2 ? [0, 1, DIFFERENCE] : [0];
  const items = [];
  let height = 0;
  const put = (item) => { items.push(item); height = Math.max(height, item.y + item.h); return item; };
  const hall = place.hall;
  if (sets.length === 1) {
    const {keys} = stage.maps.kinds[place.kind];
    const beside = !hall && width >= NARROW && keys.length <= BESIDE;
    const small = (draw) => {
      const large = draw(beside ? Math.floor(width * 0.57) : width);
      if (hall) return;
      const x = beside ? Math.floor(width * 0.61) : 0, y = beside ? 0 : large.h + 14;
      put(tilesItem(stage, {place, set: 0, x, y, w: width - x, room: beside ? Math.max(330, large.h) : 330, layers: [place.layer]}));
    };
    if (place.drawing === 'map') small((w) => put(mapItem(stage, {place, set: 0, x: 0, y: 0, w})));
    else if (place.drawing === 'lines') small((w) => put(linesItem(stage, {place, set: 0, x: 0, y: 0, w})));
    else put(tilesItem(stage, {place, set: 0, x: 0, y: 0, w: width, room: hall ? innerHeight - 130 : 500, layers: layersOf(stage, place)}));
    return {items, height};
  }
  const abreast = width >= NARROW && (place.drawing !== 'all' || stage.maps.kinds[place.kind].heads <= 8);
  const shares = abreast ? [0.38, 0.31, 0.31] : [1, 1, 1];
  let x = 0, y = 0;
  sets.forEach((set, index) => {
    const w = Math.floor((width - (abreast ? 24 : 0)) * shares[index]), full = !abreast || index === 0;
    const title = 26, asked = {place, set, x, y: y + title, w, full, narrow: abreast};
    const item = put(
      place.drawing === 'map' || (place.drawing === 'lines' && set === DIFFERENCE) ? mapItem(stage, asked)
      : place.drawing === 'lines' ? linesItem(stage, asked)
      : tilesItem(stage, {...asked, room: 420, layers: layersOf(stage, place)}));
    item.title = {text: stage.words.panels[index], x: item.box.x, y: y + 11};
    if (abreast) x += w + 12;
    else y = item.y + item.h + 18;
  });
  return {items, height};
}

function layersOf(stage, place) {
  return place.drawing === 'all' ? Array.from({length: stage.maps.kinds[place.kind].layers}, (_, i) => i) : [place.layer];
}

// The part of a map that is shown: all of it, or `stage.zoom` pieces around the chosen cell.
function windowOf(stage, place) {
  const {queries, keys} = stage.maps.kinds[place.kind], zoom = stage.zoom ?? READABLE;
  const one = (count, at, moved) => {
    const size = Math.min(count, zoom);
    return [Math.round(Math.min(Math.max(0, at - size / 2 + moved), count - size)), size];
  };
  const [query, key] = stage.cell(place);
  const [row, rows] = one(queries.length, query, stage.moved.row), [column, columns] = one(keys.length, key, stage.moved.column);
  return {row, column, rows, columns};
}

function labelSize(count, room, hall) {
  return Math.max(hall ? 24 : 11, Math.min(hall ? 32 : 18, Math.floor(room / Math.max(count, 1))));
}

function mapItem(stage, {place, set, x, y, w, full = true, narrow = false}) {
  const {paint} = stage, {queries, keys, out} = stage.maps.kinds[place.kind], shown = windowOf(stage, place);
  const hall = place.hall, names = keys.slice(shown.column, shown.column + shown.columns);
  const rowSize = labelSize(shown.rows, hall ? innerHeight - 220 : 400, hall), title = 20;
  const most = w * (narrow ? 0.42 : 0.36), measured = (label) => {
    let widest = 0;
    for (let row = shown.row; row < shown.row + shown.rows; row += 1) widest = Math.max(widest, paint.width(label(row), rowSize, true));
    return widest + 10;
  };
  // What comes out stands beside what goes in, where both can be read.
  const both = out && full ? measured((row) => `${queries[row]} → ${out[row]}`) : Infinity, withOut = both <= most;
  const rowWidth = Math.min(withOut ? both : measured((row) => queries[row]), most);
  const left = rowWidth + (full ? title : 0);
  let across = (w - left - ENDS) / shown.columns;
  const size = hall ? 24 : Math.max(11, Math.min(18, Math.floor(across * 0.9)));
  const longest = Math.max(...names.map((name) => paint.width(name, size, true)));
  const flat = longest + 6 <= across, steep = across < size * 1.5;
  const angle = flat ? 0 : steep ? -Math.PI / 2 : -0.87, room = hall ? 200 : 96;
  const long = Math.min(longest, room);
  if (!flat && !steep) across = (w - left - Math.max(ENDS, long * Math.cos(angle))) / shown.columns;
  const top = title + (flat ? size + 8 : Math.max(size, long * Math.sin(-angle) + size * Math.cos(angle)) + 8);
  const tall = hall ? (innerHeight - 150 - top) / shown.rows
    : shown.rows > READABLE ? (READABLE * (rowSize + 2)) / shown.rows
    : Math.max(rowSize + 2, Math.min(40, (390 - top) / shown.rows));
  across = Math.min(across, hall ? tall * 2.4 : 84);
  const box = {x: x + left, y: y + top, w: across * shown.columns, h: tall * shown.rows};
  return {type: 'map', set, x, y, w, h: top + box.h + (hall ? 0 : 40), box, window: shown, across, tall, full, narrow, hall,
    rows: {size: rowSize, width: rowWidth, out: withOut}, columns: {size, angle, room: flat ? across : room}};
}

// Small maps of some layers: of one layer in as many columns as make them largest, of several a row each.
function tilesItem(stage, {place, set, x, y, w, room, layers}) {
  const {heads, queries, keys} = stage.maps.kinds[place.kind], shape = keys.length / queries.length;
  const many = layers.length > 1, left = many ? 24 : 0, top = many ? 24 : 0, head = many ? 0 : 20, bottom = 40;
  let best = {w: 0};
  for (let columns = many ? heads : 1; columns <= heads; columns += 1) {
    const rows = many ? layers.length : Math.ceil(heads / columns);
    const [wide, tall] = [(w - left) / columns - (many ? GAP : 12), (room - top - bottom) / rows - head - (many ? GAP : 6)];
    const fit = Math.min(wide, tall * shape), each = many ? {w: wide, h: Math.min(tall, wide / shape * 1.6)} : {w: fit, h: fit / shape};
    if (each.w > best.w) best = {...each, columns, rows};
  }
  const step = {x: best.w + (many ? GAP : 12), y: best.h + head + (many ? GAP : 6)};
  const tiles = layers.flatMap((layer, down) => Array.from({length: heads}, (_, index) => {
    const [row, column] = many ? [down, index] : [Math.floor(index / best.columns), index % best.columns];
    return {layer, head: index, x: x + left + column * step.x, y: y + top + head + row * step.y, w: best.w, h: best.h};
  }));
  const box = {x: x + left, y: y + top, w: best.columns * step.x, h: best.rows * step.y};
  return {type: 'tiles', set, x, y, w, h: top + box.h + bottom, box, tiles, many};
}

function linesItem(stage, {place, set, x, y, w}) {
  const {paint} = stage, {queries, keys} = stage.maps.kinds[place.kind], hall = place.hall, top = 26;
  const most = Math.max(queries.length, keys.length), room = hall ? innerHeight - 160 : Math.max(370, 13 * most);
  const size = labelSize(most, hall ? innerHeight - 160 : 400, hall);
  const measured = (pieces) => Math.min(w * 0.3, 10 + Math.max(...pieces.map((piece) => paint.width(piece, size, true))));
  const [left, right] = [measured(queries), measured(keys)];
  const box = {x: x + left, y: y + top, w: Math.min(w - left - right, hall ? w : 360), h: room};
  const places = (count) => Array.from({length: count}, (_, i) => box.y + (count === 1 ? 0.5 : (i + 0.5) / count) * room);
  return {type: 'lines', set, x, y, w, h: top + room + 10, box, size, left: places(queries.length), right: places(keys.length),
    widths: [left, right], hall};
}

// What lies under a point of the canvas: {item, query, key}, either of which may be missing, or {item, tile}.
function under(items, x, y) {
  for (const item of items) {
    const {box} = item;
    if (item.type === 'tiles') {
      const tile = item.tiles.find((tile) => x >= tile.x && x < tile.x + tile.w && y >= tile.y - 18 && y < tile.y + tile.h);
      if (tile) return {item, tile};
    } else if (item.type === 'map') {
      const [column, row] = [Math.floor((x - box.x) / item.across), Math.floor((y - box.y) / item.tall)];
      const key = column >= 0 && column < item.window.columns ? column + item.window.column : undefined;
      const query = row >= 0 && row < item.window.rows ? row + item.window.row : undefined;
      if (query !== undefined && x >= item.x && x < box.x + box.w) return {item, query, key: x >= box.x ? key : undefined};
      if (key !== undefined && y >= item.y && y < box.y) return {item, key};
    } else if (x >= item.x && x < item.x + item.widths[0] + box.w + item.widths[1]) {
      const nearest = (places) => places.reduce((best, at, i) => (Math.abs(at - y) < Math.abs(places[best] - y) ? i : best), 0);
      if (y < box.y || y > box.y + box.h) continue;
      if (x < box.x + box.w * 0.35) return {item, query: nearest(item.left)};
      if (x > box.x + box.w * 0.65) return {item, key: nearest(item.right)};
    }
  }
  return null;
}
