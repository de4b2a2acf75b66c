// Files as torch.save writes them: a zip of stored members, a pickle of tensors that name them.
import * as zlib from "node:zlib";

const text = (s) => Buffer.concat([Buffer.from("X"), u32(Buffer.byteLength(s)), Buffer.from(s)]);
const u32 = (n) => { const b = Buffer.alloc(4); b.writeUInt32LE(n >>> 0); return b; };
const u16 = (n) => { const b = Buffer.alloc(2); b.writeUInt16LE(n); return b; };
const int = (n) => Buffer.concat([Buffer.from("J"), u32(n)]);
const tuple = (parts) => Buffer.concat([Buffer.from("("), ...parts, Buffer.from("t")]);
const global = (module, name) => Buffer.from(`c${module}\n${name}\n`);

// shape, and data as Float32Array or BigInt64Array
function tensorPickle({ shape, data }, key) {
  const storage = data instanceof BigInt64Array ? "LongStorage" : "FloatStorage";
  const strides = shape.map((_, i) => shape.slice(i + 1).reduce((a, b) => a * b, 1));
  const stored = tuple([text("storage"), global("torch", storage), text(String(key)), text("cpu"), int(data.length)]);
  const hooks = Buffer.concat([global("collections", "OrderedDict"), Buffer.from(")R")]);
  return Buffer.concat([
    global("torch._utils", "_rebuild_tensor_v2"),
    tuple([Buffer.concat([stored, Buffer.from("Q")]), int(0), tuple(shape.map(int)), tuple(strides.map(int)), Buffer.from([0x89]), hooks]),
    Buffer.from("R"),
  ]);
}

function zip(members) {
  const parts = [], directory = [];
  let at = 0;
  for (const [name, bytes] of members) {
    const common = [u16(0), u16(0), u32(0), u32(crc(bytes)), u32(bytes.length), u32(bytes.length), u16(name.length), u16(0)];
    const local = Buffer.concat([u32(0x04034b50), u16(20), ...common, Buffer.from(name), bytes]);
    directory.push(Buffer.concat([u32(0x02014b50), u16(20), u16(20), ...common, u16(0), u16(0), u16(0), u32(0), u32(at), Buffer.from(name)]));
    parts.push(local);
    at += local.length;
  }
  const central = Buffer.concat(directory);
  return Buffer.concat([...parts, central, u32(0x06054b50), u16(0), u16(0), u16(members.length), u16(members.length), u32(central.length), u32(at), u16(0)]);
}

// zlib's crc32 is not in every node.
const TABLE = Array.from({ length: 256 }, (_, i) => { let c = i; for (let k = 0; k < 8; ++k) c = (c >>> 1) ^ (c & 1 ? 0xedb88320 : 0); return c >>> 0; });
function crc(bytes) {
  if (zlib.crc32) return zlib.crc32(bytes);
  let c = ~0 >>> 0;
  for (const byte of bytes) c = TABLE[(c ^ byte) & 255] ^ (c >>> 8);
  return ~c >>> 0;
}

// A tensor, or an object of tensors by name.
export function torchFile(content) {
  const one = Array.isArray(content.shape), tensors = one ? [["", content]] : Object.entries(content);
  const pickled = tensors.map(([, tensor], key) => tensorPickle(tensor, key));
  const body = one ? pickled[0] : Buffer.concat([Buffer.from("}("), ...tensors.flatMap(([name], key) => [text(name), pickled[key]]), Buffer.from("u")]);
  const pickle = Buffer.concat([Buffer.from([0x80, 2]), body, Buffer.from(".")]);
  const bytes = ({ data }) => Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return zip([["archive/data.pkl", pickle], ["archive/version", Buffer.from("3\n")], ...tensors.map(([, tensor], key) => [`archive/data/${key}`, bytes(tensor)])]);
}
