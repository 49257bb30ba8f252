// SPDX-License-Identifier: Apache-2.0

// Objects as YAML, as kubectl writes it: keys in their order, lists not indented, what a reader of YAML 1.1 would take for
// something else in quotes. This is a file of its own in the build, which is loaded where YAML is looked at.

import { Document, Scalar, visit } from "yaml";

// What draws nothing, or makes text run backwards; line ends and tabs are text.
const acts = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const allThatActs = new RegExp(acts.source, "gu");

/** yamlOf writes an object. What it holds is shown as it is: a character that would act on the reader is an escape. */
export function yamlOf(object: unknown): string {
  const doc = new Document(object, { version: "1.1", aliasDuplicateObjects: false, sortMapEntries: true });
  visit(doc, {
    Scalar(_, node) {
      if (typeof node.value === "string" && acts.test(node.value)) {
        node.type = Scalar.QUOTE_DOUBLE;
      }
    },
  });
  const text = doc.toString({ indentSeq: false, lineWidth: 0, blockQuote: "literal", doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER });
  return text.replace(allThatActs, escape);
}

/** escape is a character as YAML's strings in double quotes have it. */
function escape(character: string): string {
  const code = character.codePointAt(0)!;
  const [letter, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return `\\${letter}${code.toString(16).padStart(digits as number, "0")}`;
}
