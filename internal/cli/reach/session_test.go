// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/session"
)

// wherrys is a server that is Wherry's.
func wherrys(answer http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			_, _ = io.WriteString(w, `{"gitVersion":"v1.37.2+wherry"}`)
			return
		}
		answer(w, r)
	})
}

// A session is asked for with all that a kubeconfig can say, and a refusal is the API's own error.
func TestStreamAsConfigured(t *testing.T) {
	var header http.Header
	srv := httptest.NewServer(wherrys(func(w http.ResponseWriter, r *http.Request) {
		header = r.Header
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"taken","reason":"AlreadyExists","code":409}`)
	}))
	defer srv.Close()
	c := &Client{Config: &rest.Config{Host: srv.URL, BearerToken: "secret", UserAgent: "me", Impersonate: rest.ImpersonationConfig{UserName: "jane"}}}
	said := 0
	code, err := c.Stream(t.Context(), cmdline.Terminal{Out: io.Discard, Err: io.Discard}, "shop", ask.Toolbox{Pod: "web", Command: []string{"true"}}.Session(), Notices{Before: func() { said++ }})
	if code != 1 || !apierrors.IsAlreadyExists(err) || err.Error() != "taken" || said != 1 {
		t.Errorf("code %d, %v, said %d times", code, err, said)
	}
	if header.Get("Authorization") != "Bearer secret" || header.Get("Impersonate-User") != "jane" || header.Get("User-Agent") != "me" {
		t.Errorf("%v", header)
	}
}

// A server that does not speak WebSocket as sessions do is asked over SPDY.
func TestStreamToAnOlderServer(t *testing.T) {
	asked := []string{}
	srv := httptest.NewServer(wherrys(func(w http.ResponseWriter, r *http.Request) {
		if websocket.IsWebSocketUpgrade(r) {
			asked = append(asked, "websocket")
			w.WriteHeader(http.StatusForbidden)
			return
		}
		asked = append(asked, "spdy")
		http.Error(w, "unable to upgrade: no such container", http.StatusNotFound)
	}))
	defer srv.Close()
	c := &Client{Config: &rest.Config{Host: srv.URL}}
	var out bytes.Buffer
	code, err := c.Stream(t.Context(), cmdline.Terminal{Out: &out, Err: io.Discard}, "shop", ask.Toolbox{Pod: "web", Command: []string{"true"}}.Session(), Notices{})
	if fmt.Sprint(asked) != "[websocket spdy]" || err == nil || !strings.Contains(err.Error(), "no such container") || code != session.ExitRefused {
		t.Errorf("asked by %v: code %d, %v", asked, code, err)
	}
	base, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	u, err := ask.Toolbox{Pod: "web", Writable: true, Stdin: true, Command: []string{"true"}}.Session().URL(base.JoinPath("below"), "shop")
	if err != nil || !strings.HasPrefix(u.String(), srv.URL+"/below/api/v1/namespaces/shop/pods/web/exec?") || u.Query().Get("writable") != "true" {
		t.Errorf("%s", u)
	}
}

// A name that would lead to another place of the API is refused before anything is asked.
func TestStreamNames(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer srv.Close()
	c := &Client{Config: &rest.Config{Host: srv.URL}}
	for _, n := range []struct{ namespace, pod string }{{"shop", "../services"}, {"shop", ".."}, {"shop", "a%2fb"}, {"shop", "deploy/web"}, {"a/b", "web"}, {"..", "web"}} {
		code, err := c.Stream(t.Context(), cmdline.Terminal{}, n.namespace, ask.Toolbox{Pod: n.pod, Command: []string{"true"}}.Session(), Notices{})
		if err == nil || code != cmdline.ExitUsage || !strings.Contains(err.Error(), "is not a ") {
			t.Errorf("%v: code %d, %v", n, code, err)
		}
	}
	if asked > 0 {
		t.Errorf("asked %d times", asked)
	}
}

// The exit code over SPDY is the command's; 125 to 127 where it could not be run, as docker run has them; 1 for refusals.
func TestSPDYCode(t *testing.T) {
	refusal := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusConflict, Message: "no"}}
	for name, c := range map[string]struct {
		err  error
		code int
		says bool
	}{
		"well":             {nil, 0, false},
		"exit code":        {fmt.Errorf("stream: %w", exec.CodeExitError{Err: errors.New("x"), Code: 42}), 42, false},
		"refused":          {refusal, 1, true},
		"upgrade":          {&httpstream.UpgradeFailureError{Cause: refusal}, 1, true},
		"exec, no command": {errors.New(`Internal error occurred: unable to start container process: exec: "x": executable file not found in $PATH`), 127, true},
		"refused by node":  {errors.New("Internal error occurred: unable to upgrade connection: image exec: no such image"), 1, true},
		"broken line":      {io.ErrUnexpectedEOF, 125, true},
	} {
		t.Run(name, func(t *testing.T) {
			code, err := spdyCode(c.err)
			if code != c.code || (err != nil) != c.says {
				t.Errorf("code %d, error %v; want %d, and an error: %v", code, err, c.code, c.says)
			}
		})
	}
}
