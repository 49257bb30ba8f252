// SPDX-License-Identifier: Apache-2.0

package podrun

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// PL-09: a line is printed once, whether the server tells the streams of a log apart, takes no notice of being asked to, or forbids it.
func TestLogsOfAnyServer(t *testing.T) {
	at := field.NewPath("stream")
	for name, c := range map[string]struct {
		refuses  func(stream string) *field.Error
		splits   bool
		out, err string
	}{
		"it splits": {splits: true, out: "said\n", err: "cried\n", refuses: func(stream string) *field.Error {
			if stream == noStream {
				return field.NotSupported(at, stream, []string{"All", "Stderr", "Stdout"})
			}
			return nil
		}},
		"it takes no notice": {out: "said\ncried\n", refuses: func(string) *field.Error { return nil }},
		"it forbids to ask": {out: "said\ncried\n", refuses: func(stream string) *field.Error {
			if stream != "" {
				return field.Forbidden(at, "may not be specified")
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				stream := r.URL.Query().Get("stream")
				if fault := c.refuses(stream); fault != nil {
					status := apierrors.NewInvalid(schema.GroupKind{Kind: "PodLogOptions"}, "web", field.ErrorList{fault}).ErrStatus
					status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(int(status.Code))
					_ = json.NewEncoder(w).Encode(status)
					return
				}
				if !c.splits || stream == corev1.LogStreamStdout {
					_, _ = io.WriteString(w, "said\n")
				}
				if !c.splits || stream == corev1.LogStreamStderr {
					_, _ = io.WriteString(w, "cried\n")
				}
			}))
			defer srv.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: srv.URL})
			if err != nil {
				t.Fatal(err)
			}
			var out, errs safe
			r := &Runner{Client: client, Screen: &Screen{Out: &out, Err: &errs, Start: time.Now()}}
			f := newFollower(r, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}})
			f.copyLogs(t.Context(), "main")
			f.logs.Wait()
			if out.String() != c.out || errs.String() != c.err {
				t.Errorf("printed %q and %q, want %q and %q", out.String(), errs.String(), c.out, c.err)
			}
		})
	}
}

// A log that breaks off, as when the server is killed, is told of once for both its streams, with the command that shows all of it.
func TestLogThatBreaksOff(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "said\n")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer srv.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	var out, errs safe
	r := &Runner{Client: client, Screen: &Screen{Out: &out, Err: &errs, Start: time.Now()}}
	f := newFollower(r, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}})
	f.copyLog(t.Context(), "main", new(corev1.LogStreamStdout))
	f.copyLog(t.Context(), "main", new(corev1.LogStreamStderr))
	if said := errs.String(); out.String() != "said\n" ||
		strings.Count(said, "its log was cut off, see all of it with wherry kubectl logs -n shop web -c main: ") != 1 {
		t.Errorf("printed %q and said %q", out.String(), said)
	}
}
