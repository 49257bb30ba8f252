// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

// split cuts data into documents: YAML at its "---" lines, JSON between its values.
func split(data []byte) ([]document, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) {
		return nil, errors.New("is not UTF-8 text; is it really a manifest?")
	}
	if trimmed := bytes.TrimLeft(data, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		if docs, ok := splitJSON(data); ok {
			return docs, nil
		}
	}
	return splitYAML(data), nil
}

// splitJSON reports false when data is no run of JSON values (it may still be YAML's flow style).
func splitJSON(data []byte) ([]document, bool) {
	var docs []document
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		start := dec.InputOffset()
		var raw json.RawMessage
		if err := dec.Decode(&raw); err == io.EOF {
			return docs, true
		} else if err != nil {
			return nil, false
		}
		start += int64(bytes.Index(data[start:], raw))
		docs = append(docs, document{line: 1 + bytes.Count(data[:start], []byte("\n")), text: raw})
	}
}

func splitYAML(data []byte) []document {
	var docs []document
	begin := 0 // offset and line of the document under way
	beginLine, line := 1, 1
	for at := 0; at < len(data); line++ {
		end := len(data)
		if n := bytes.IndexByte(data[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		if rest, ok := bytes.CutPrefix(data[at:end], []byte("---")); ok &&
			(len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n")) {
			docs = appendDocument(docs, data[begin:at], beginLine)
			begin, beginLine = at, line // the marker stays: YAML reads it as the document's start
		}
		at = end
	}
	return appendDocument(docs, data[begin:], beginLine)
}

func appendDocument(docs []document, text []byte, line int) []document {
	if len(bytes.TrimSpace(text)) == 0 {
		return docs
	}
	return append(docs, document{line: line, text: text})
}
