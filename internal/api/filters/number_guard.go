// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"bytes"
	"encoding/binary"
	"mime"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/yaml"
)

// What no quantity has: an exponent below -smallest (none is below 1n, which is 1e-9), or more digits than longest.
const (
	smallest = 10_000
	longest  = 10_000
)

// withBoundedNumbers refuses what has a number such as 1e-10000000 in it, or one of a million digits. Where that is a
// quantity, to decode it takes the library (resource.ParseQuantity) seconds or minutes of a processor, and more than
// twice as long for each doubling, whoever asks and whether or not the object is then refused (RS-01). It is looked for
// before anything is decoded, in the first most bytes of a body, of which the library takes no more; what has texts and
// no quantities, ConfigMaps and Secrets, may have it.
func withBoundedNumbers(next http.Handler, codecs runtime.NegotiatedSerializer, most int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !bringsObject(req) {
			next.ServeHTTP(w, req)
			return
		}
		req, body, err := peek(req, most)
		if kind, _, _ := mime.ParseMediaType(req.Header.Get("Content-Type")); err == nil {
			if why := endlessNumber(body, kind); why != "" {
				responsewriters.ErrorNegotiated(apierrors.NewBadRequest(why), codecs, schema.GroupVersion{}, w, req)
				return
			}
		}
		next.ServeHTTP(w, req)
	})
}

// bringsObject says whether a request's body is an object, or a patch of one, that may have quantities.
func bringsObject(req *http.Request) bool {
	switch req.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
	default:
		return false
	}
	info, ok := request.RequestInfoFrom(req.Context())
	if !ok || !info.IsResourceRequest || req.Body == nil || req.Body == http.NoBody || req.Header.Get("Upgrade") != "" {
		return false
	}
	switch info.Subresource {
	case "proxy", "exec", "attach", "portforward": // what goes through is a program's
		return false
	}
	return info.APIGroup != "" || info.Resource != "configmaps" && info.Resource != "secrets"
}

// endlessNumber says what is wrong with such a number in a body of that media type; "": there is none. (Pure.)
func endlessNumber(body []byte, kind string) string {
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
			if digits++; digits > longest {
				return "a number in it has more than " + strconv.Itoa(longest) + " digits: no quantity is so long"
			}
			continue
		}
		if (c == 'e' || c == 'E') && digits > 0 && i+1 < len(body) && body[i+1] == '-' {
			n := tinyExponent(body[i+2:])
			if n > 0 && (whole(body, i-digits, i+2+n) || sizesPages(body[:i-digits])) {
				return "a number in it has an exponent of -" + strconv.Itoa(smallest) +
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

// tinyExponent is how long the number is that a text begins with, if it is at least smallest; else 0.
func tinyExponent(text []byte) (length int) {
	n := 0
	for length < len(text) && digit(text[length]) {
		n = min(10*n+int(text[length]-'0'), smallest)
		length++
	}
	if n < smallest {
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
