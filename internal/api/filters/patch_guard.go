// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// withWholePatches refuses JSON patches at which the library panics, which it does for those of custom resources too.
// The first most bytes of a body are looked at: the library takes no more.
func withWholePatches(next http.Handler, codecs runtime.NegotiatedSerializer, most int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
		if req.Method != http.MethodPatch || req.Body == nil || err != nil || kind != string(types.JSONPatchType) {
			next.ServeHTTP(w, req)
			return
		}
		req, body, err := peek(req, most)
		if err == nil && lacksValue(body) {
			refusal := apierrors.NewBadRequest(`an operation "test" of the patch has no value: say what "value" the whole object is to be compared with`)
			responsewriters.ErrorNegotiated(refusal, codecs, schema.GroupVersion{}, w, req)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// peek is the beginning of a request's body, and the request with its body whole again. The error is that of reading,
// which whoever reads that body meets too.
func peek(req *http.Request, most int64) (whole *http.Request, beginning []byte, err error) {
	beginning, err = io.ReadAll(io.LimitReader(req.Body, most))
	rest := io.Reader(req.Body)
	if err != nil {
		rest = failedReader{err}
	}
	whole = req.Clone(req.Context())
	whole.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(beginning), rest), req.Body}
	return whole, beginning, err
}

// failedReader fails as a reader before it has.
type failedReader struct{ err error }

// Read implements io.Reader.
func (f failedReader) Read([]byte) (int, error) { return 0, f.err }

// lacksValue finds a test of the whole document that says not for what. (Pure.) RFC 6902 wants a value, and what reads
// patches (github.com/evanphx/json-patch 4.13) looks into it without asking whether it is there.
func lacksValue(patch []byte) bool {
	var ops []map[string]*json.RawMessage
	if json.Unmarshal(patch, &ops) != nil {
		return false // refused by the library
	}
	word := func(op map[string]*json.RawMessage, name string) (text string, ok bool) {
		raw := op[name]
		return text, raw != nil && json.Unmarshal(*raw, &text) == nil
	}
	for _, op := range ops {
		verb, _ := word(op, "op")
		path, ok := word(op, "path")
		if _, given := op["value"]; verb == "test" && ok && path == "" && !given {
			return true
		}
	}
	return false
}
