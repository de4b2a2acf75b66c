// node counts.mjs FILE: counts of four tokens as one NumPy array, for `truth import`.
import { writeFileSync } from "node:fs";

const header = "{'descr': '<i8', 'fortran_order': False, 'shape': (4,), }".padEnd(117) + "\n";
const bytes = Buffer.alloc(160);  // magic and version 8, length 2, header 118, four numbers
bytes.write("\x93NUMPY\x01\0", "latin1");
bytes.writeUInt16LE(header.length, 8);
bytes.write(header, 10);
[7, 1, 0, 8].forEach((count, id) => bytes.writeBigInt64LE(BigInt(count), 128 + 8 * id));
writeFileSync(process.argv[2], bytes);
