// SPDX-License-Identifier: Apache-2.0

package quantities

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// What no quantity in an object has: an exponent of -exponentMost or below (none is below 1n, which is 1e-9), or more
// digits than digitsMost. What is less is quick.
const (
	exponentMost = 10_000
	digitsMost   = 10_000
)

// Endless says what is wrong with a number in an object that is no quantity, and that it would take long to find that
// out about, in a body of that media type (JSON, YAML, protobuf; "" for JSON). "": there is none.
func Endless(body []byte, kind string) string {
	whole := wholeInJSON
	switch {
	case strings.HasSuffix(kind, "protobuf"):
		whole = wholeInProtobuf
	case strings.HasSuffix(kind, "yaml"): // which has many ways to write a text
		if text, err := yaml.YAMLToJSON(body); err == nil { // else the library refuses it
			body = text
		}
		fallthrough
	default:
		if bytes.Contains(body, []byte(`\u`)) {
			body = unescaped(body)
		}
	}
	digits := 0
	for i, c := range body {
		if digit(c) || c == '.' {
			if digits++; digits > digitsMost {
				return "a number in it has more than " + strconv.Itoa(digitsMost) + " digits: no quantity is so long"
			}
			continue
		}
		if (c == 'e' || c == 'E') && digits > 0 && i+1 < len(body) && body[i+1] == '-' {
			n := tinyExponent(body[i+2:])
			if n > 0 && (whole(body, i-digits, i+2+n) || sizesPages(body[:i-digits])) {
				return "a number in it has an exponent of -" + strconv.Itoa(exponentMost) +
					" or below: no quantity is so small"
			}
		}
		digits = 0
	}
	return ""
}

// sizesPages says whether what follows is the size in a resource's name, such as hugepages-2Mi, or in a medium's,
// HugePages-2Mi, which is read as a quantity, too.
func sizesPages(before []byte) bool {
	before = bytes.TrimRight(before, "+-")
	return bytes.HasSuffix(before, []byte("hugepages")) || bytes.HasSuffix(before, []byte("HugePages"))
}

// wholeInJSON says whether a number, with its sign, is all of a value: in a name such as e2e-29384920, as the Jobs of
// CronJobs have them, it is not.
func wholeInJSON(text []byte, from, to int) bool {
	if from > 0 && (text[from-1] == '-' || text[from-1] == '+') {
		from--
	}
	ends := func(c byte, by string) bool { return strings.IndexByte(by, c) >= 0 }
	return (from == 0 || ends(text[from-1], "\":[, \t\r\n")) && (to == len(text) || ends(text[to], "\",]} \t\r\n"))
}

// wholeInProtobuf says so where a text has its length before it.
func wholeInProtobuf(message []byte, from, to int) bool {
	if from > 0 && (message[from-1] == '-' || message[from-1] == '+') && hasLength(message, from-1, to) {
		return true
	}
	return hasLength(message, from, to)
}

func hasLength(message []byte, from, to int) bool {
	length := binary.AppendUvarint(nil, uint64(to-from))
	return bytes.HasSuffix(message[:from], length)
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// tinyExponent is how long the number is that a text begins with, if it is at least exponentMost; else 0.
func tinyExponent(text []byte) (length int) {
	n := 0
	for length < len(text) && digit(text[length]) {
		n = min(10*n+int(text[length]-'0'), exponentMost)
		length++
	}
	if n < exponentMost {
		return 0
	}
	return length
}

// unescaped is JSON with what is written as \u0065 written as it is, where that is a letter of ASCII. It need not be
// JSON any more.
func unescaped(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+6 <= len(text) && text[i+1] == 'u' {
			if c, err := strconv.ParseUint(string(text[i+2:i+6]), 16, 16); err == nil && c < 0x80 {
				out = append(out, byte(c))
				i += 5
				continue
			}
		}
		out = append(out, text[i])
	}
	return out
}
