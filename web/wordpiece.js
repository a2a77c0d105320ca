// BERT's WordPiece. What the tokenizer makes of each character is a table that Python wrote, so that no browser's
// idea of Unicode counts: `letters` says what a character becomes, `ranges` which ones vanish, are spaces or stand alone.
const [GONE, SPACE, ALONE] = ["gone", "space", "alone"];

export function wordPiece({ vocabulary, special, ranges, letters, unknown, prefix, longestWord, longest, ends }) {
  const ids = new Map(vocabulary.map((token, id) => [token, id]));
  const [opening, closing] = ends.map((token) => ids.get(token));
  const escaped = special.map((token) => token.replace(/[^\w]/g, "\\$&"));
  const marks = new RegExp(`(${escaped.join("|")})`);

  function kindOf(code) {
    let low = 0, high = ranges.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1, [first, last, kind] = ranges[middle];
      if (code < first) high = middle - 1;
      else if (code > last) low = middle + 1;
      else return kind;
    }
    return null;
  }

  function spread(character) {
    if (Object.hasOwn(letters, character)) return letters[character];
    const kind = kindOf(character.codePointAt(0));
    return kind === GONE ? "" : kind === SPACE ? " " : kind === ALONE ? ` ${character} ` : character;
  }

  // the longest piece that the vocabulary has, again and again; a word with a rest that has none is unknown
  function pieces(word) {
    const found = [];
    for (let start = 0; start < word.length; ) {
      let end = word.length, id;
      while (end > start && (id = ids.get((start ? prefix : "") + word.slice(start, end))) === undefined) end -= 1;
      if (end === start) return [ids.get(unknown)];
      found.push(id);
      start = end;
    }
    return [...word].length > longestWord ? [ids.get(unknown)] : found;
  }

  function tokens(text) {
    const words = (part) => Array.from(part, spread).join("").split(" ").filter(Boolean);
    return text.split(marks).flatMap((part) => (special.includes(part) ? [ids.get(part)] : words(part).flatMap(pieces)));
  }

  // Two texts that are too long together: the longer one is cut first, then both have half; the longer one has the odd token.
  function cut(a, b) {
    const room = longest - 3, half = Math.floor(room / 2);
    if (a.length + b.length <= room) return [a, b];
    const shorter = Math.min(a.length, b.length, half), longer = room - shorter;
    return a.length > b.length ? [a.slice(0, longer), b.slice(0, shorter)] : [a.slice(0, shorter), b.slice(0, longer)];
  }

  return (first, second) => {
    const whole = [tokens(first), tokens(second)], [a, b] = cut(...whole);
    return {
      ids: [opening, ...a, closing, ...b, closing],
      types: [...Array(a.length + 2).fill(0), ...Array(b.length + 1).fill(1)],
      cut: a.length + b.length < whole[0].length + whole[1].length,
    };
  };
}
