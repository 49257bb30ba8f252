// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api"
)

const (
	openAPIv2Protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	openAPIv3Protobuf = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
)

// The OpenAPI documents are made when they are asked for, by many at once, and are those that the library makes at
// every start, byte for byte, by name and by hash.
func TestOpenAPIIsMadeWhenAskedFor(t *testing.T) {
	s, stop := serve(t, api.Config{DataDir: t.TempDir(), BindAddress: "127.0.0.1", EtcdPrefix: "/documents",
		EtcdServers: []string{shared.etcd.Endpoint()}})
	defer stop()
	if s.DocumentMade() {
		t.Error("a document was made that nobody asked for")
	}
	library := s.LibraryDocuments()
	their := func(path, as string) *http.Response {
		req := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		req.Header.Set("Accept", as)
		answer := httptest.NewRecorder()
		library.ServeHTTP(answer, req)
		return answer.Result()
	}
	client, err := rest.HTTPClientFor(configOf(t, s))
	if err != nil {
		t.Fatal(err)
	}
	our := func(path, as string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", as)
		resp, err := client.Do(req)
		if err != nil {
			t.Error(err)
			return their("/nothing", as)
		}
		return resp
	}
	compare := func(path, as string) []byte {
		want, got := their(path, as), our(path, as)
		defer got.Body.Close()
		text, err := io.ReadAll(want.Body)
		if err != nil || len(text) == 0 || want.StatusCode != http.StatusOK {
			t.Errorf("the library has no %s: %v, %v", path, want.Status, err)
		}
		ours, err := io.ReadAll(got.Body)
		if err != nil || !bytes.Equal(ours, text) {
			t.Errorf("%s as %s is another text: %d bytes instead of %d (%v)", path, as, len(ours), len(text), err)
		}
		for _, h := range []string{"Etag", "Content-Type", "Vary"} {
			if got.Header.Get(h) != want.Header.Get(h) {
				t.Errorf("%s as %s: %s is %q instead of %q", path, as, h, got.Header.Get(h), want.Header.Get(h))
			}
		}
		return text
	}
	var list struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	var asking sync.WaitGroup
	for range 2 { // and once more, when all are there
		for range 4 {
			asking.Go(func() { compare("/openapi/v3/apis/apps/v1", "application/json") })
			asking.Go(func() { compare("/openapi/v3", "application/json") })
			asking.Go(func() { compare("/openapi/v2", "application/json") })
			asking.Go(func() { compare("/openapi/v2", openAPIv2Protobuf) })
		}
		asking.Wait()
		if err := json.Unmarshal(compare("/openapi/v3", "application/json"), &list); err != nil ||
			len(list.Paths) < 20 {
			t.Fatalf("%d groups, %v", len(list.Paths), err)
		}
		for path, at := range list.Paths {
			compare(at.ServerRelativeURL, "application/json")
			if strings.HasPrefix(path, "apis/apps") {
				compare("/openapi/v3/"+path, openAPIv3Protobuf)
			}
		}
	}
	if !s.DocumentMade() {
		t.Error("it cannot be seen whether a document was made")
	}
}
