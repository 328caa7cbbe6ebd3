/** Box is what is laid out: its size, and the boxes that come before it. */
export interface Box { id: string; width: number; height: number; after: string[] }

export interface Place { x: number; y: number }

/** Laid is where the boxes of a graph are, and how large it is. layers is the order in which they are read. */
export interface Laid { places: Map<string, Place>; width: number; height: number; rows: string[][] }

const gapX = 24;
const gapY = 40;
const widest = 8;
const sweeps = 6;

/**
 * layOut places the boxes of a graph without cycles in rows, each below all that come before it, with
 * few crossings. It takes a millisecond for a hundred boxes, so it needs no worker, which Trusted Types
 * would not let the page start.
 */
export function layOut(boxes: Box[]): Laid {
  const byID = new Map(boxes.map(b => [b.id, b]));
  const before = new Map(boxes.map(b => [b.id, b.after.filter(id => byID.has(id) && id !== b.id)]));
  const behind = new Map<string, string[]>(boxes.map(b => [b.id, []]));
  for (const [id, all] of before) for (const d of all) behind.get(d)!.push(id);
  const layers = layersOf(boxes.map(b => b.id), before, behind);
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const down = sweep % 2 === 0;
    const near = down ? before : behind;
    const rank = new Map<string, number>();
    for (const layer of down ? layers : layers.toReversed()) {
      const wish = new Map(layer.map((id, i) => {
        const known = near.get(id)!.filter(n => rank.has(n));
        return [id, known.length > 0 ? known.reduce((sum, n) => sum + rank.get(n)!, 0) / known.length : i / layer.length];
      }));
      layer.sort((a, b) => wish.get(a)! - wish.get(b)!);
      layer.forEach((id, i) => rank.set(id, (i + 0.5) / layer.length));
    }
  }
  return placed(layers.flatMap(layer => inRows(layer)), byID, before);
}

/** layersOf puts each box into the layer behind the last of those before it. */
function layersOf(ids: string[], before: Map<string, string[]>, behind: Map<string, string[]>): string[][] {
  const layers: string[][] = [];
  const left = new Map(ids.map(id => [id, before.get(id)!.length]));
  const depth = new Map<string, number>();
  let free = ids.filter(id => left.get(id) === 0);
  while (free.length > 0) {
    const next: string[] = [];
    for (const id of free) {
      const at = depth.get(id) ?? 0;
      (layers[at] ??= []).push(id);
      for (const other of behind.get(id)!) {
        depth.set(other, Math.max(depth.get(other) ?? 0, at + 1));
        left.set(other, left.get(other)! - 1);
        if (left.get(other) === 0) next.push(other);
      }
    }
    free = next;
  }
  return layers.filter(layer => layer.length > 0);
}

/** inRows splits a layer that is too wide. */
function inRows(layer: string[]): string[][] {
  const rows: string[][] = [];
  for (let i = 0; i < layer.length; i += widest) rows.push(layer.slice(i, i + widest));
  return rows;
}

/** placed gives each box of the rows its place, as near as possible below those before it. */
function placed(rows: string[][], boxes: Map<string, Box>, before: Map<string, string[]>): Laid {
  const places = new Map<string, Place>();
  const middle = (id: string) => places.get(id)!.x + boxes.get(id)!.width / 2;
  let y = 0;
  for (const row of rows) {
    let free = -Infinity;
    const wishes: number[] = [];
    for (const id of row) {
      const b = boxes.get(id)!;
      const near = before.get(id)!.filter(d => places.has(d));
      const wish = near.length > 0 ? near.reduce((sum, d) => sum + middle(d), 0) / near.length - b.width / 2 : Math.max(free, 0);
      const x = Math.max(wish, free);
      places.set(id, { x, y });
      wishes.push(x - wish);
      free = x + b.width + gapX;
    }
    const shift = wishes.reduce((sum, n) => sum + n, 0) / row.length;
    for (const id of row) places.get(id)!.x -= shift;
    y += Math.max(...row.map(id => boxes.get(id)!.height)) + gapY;
  }
  const left = Math.min(0, ...[...places.values()].map(p => p.x));
  let width = 0;
  for (const [id, p] of places) {
    p.x -= left;
    width = Math.max(width, p.x + boxes.get(id)!.width);
  }
  return { places, width, height: Math.max(0, y - gapY), rows };
}
