// The model in the browser: ONNX Runtime Web, one thread, in a worker so that the page never waits for it.
import * as ort from "./onnxruntime/ort.wasm.bundle.min.mjs";

ort.env.wasm.numThreads = 1;
ort.env.wasm.proxy = true;
ort.env.wasm.wasmPaths = { wasm: new URL("onnxruntime/ort-wasm-simd-threaded.wasm", import.meta.url).href };

// Returns `logits(tokens, off)`: the model's output for the tokens of a pair without the heads whose places `off` has.
export async function openModel(address, rows, heads) {
  const session = await ort.InferenceSession.create(address);
  const whole = (values) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), [1, values.length]);

  async function logits({ ids, types }, off) {
    const mask = Float32Array.from({ length: rows * heads }, (_, place) => (off.has(place) ? 0 : 1));
    const result = await session.run({
      input_ids: whole(ids),
      attention_mask: whole(ids.map(() => 1)),
      token_type_ids: whole(types),
      head_mask: new ort.Tensor("float32", mask, [rows, heads]),
    });
    return [...result.logits.data];
  }

  let last = Promise.resolve(); // one after the other
  return (tokens, off) => (last = last.catch(() => {}).then(() => logits(tokens, off)));
}

export function probabilities(logits) {
  const highest = Math.max(...logits), powers = logits.map((x) => Math.exp(x - highest));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((x) => x / sum);
}
