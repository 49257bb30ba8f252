// SPDX-License-Identifier: Apache-2.0

package image

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Whom an image's command runs as, by numbers and by the names of its own files.
func TestImageUser(t *testing.T) {
	files := map[string]string{"etc/passwd": "root:x:0:0::/:/bin/sh\napp:x:1000:1001::/:/bin/sh\nbroken:x\nodd:x:-1:0::/:\n", "etc/group": "staff:x:50:\n"}
	read := func(name string) ([]byte, error) { return []byte(files[name]), nil }
	for user, want := range map[string][2]uint32{"": {0, 0}, "app": {1000, 1001}, "1000": {1000, 1001}, "7": {7, 0},
		"app:staff": {1000, 50}, "7:8": {7, 8}, "app:9": {1000, 9}} {
		img, err := configOf(&v1.Config{User: user, Entrypoint: []string{"a"}, Cmd: []string{"b"}}, read)
		if err != nil || img.UID != want[0] || img.GID != want[1] || strings.Join(img.Command, " ") != "a b" {
			t.Errorf("%q: %+v, %v", user, img, err)
		}
	}
	for _, user := range []string{"nobody", "app:none", "broken", "odd", "-1"} {
		if img, err := configOf(&v1.Config{User: user}, read); err == nil || !strings.Contains(err.Error(), "--user") {
			t.Errorf("%q: %+v, %v", user, img, err)
		}
	}
	none := func(string) ([]byte, error) { return nil, errors.New("no such file") }
	if img, err := configOf(&v1.Config{User: "7:8"}, none); err != nil || img.UID != 7 || img.GID != 8 {
		t.Errorf("%+v, %v", img, err)
	}
}

// What a registry says is passed on; what something else answers, to which a registry may lead, is not.
func TestAnswersOfOthers(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		text := `{"errors":[{"code":"DENIED","message":"said plainly"}]}`
		if strings.Contains(req.URL.Path, "/secret/") {
			text = `{"kind":"Status","message":"said to the node"}`
		}
		if req.URL.Path != "/v2/" {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, text)
		}
	}))
	defer srv.Close()
	for name, want := range map[string]string{"open": "said plainly", "secret": "has answered 400 Bad Request"} {
		i := &Image{Ref: strings.TrimPrefix(srv.URL, "http://") + "/" + name + ":1", Keys: authn.DefaultKeychain}
		_, err := i.Unpack(t.Context(), t.TempDir())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "said to the node") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
