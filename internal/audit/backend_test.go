// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/apimachinery/pkg/types"
	internal "k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

func numbered(n int) *internal.Event {
	return &internal.Event{Level: internal.LevelMetadata, AuditID: types.UID(fmt.Sprint("id-", n)), Stage: internal.StageResponseComplete, Verb: "create",
		ObjectRef: &internal.ObjectReference{Resource: "pods"}}
}

// receiver is a server that takes events.
type receiver struct {
	*httptest.Server
	got chan auditv1.Event
}

func newReceiver(t *testing.T, failures int32) *receiver {
	r := &receiver{got: make(chan auditv1.Event, 1000)}
	var asked atomic.Int32
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if asked.Add(1) <= failures {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		body, err := io.ReadAll(req.Body)
		var list auditv1.EventList
		if err == nil {
			err = json.Unmarshal(body, &list)
		}
		if err != nil || list.Kind != "EventList" || req.Header.Get("Authorization") != "Bearer of-events" {
			t.Errorf("%v: %s", err, body)
		}
		for _, e := range list.Items {
			r.got <- e
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// kubeconfig is how the webhook backend is told about the receiver.
func (r *receiver) kubeconfig(t *testing.T, ca []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "webhook.yaml")
	caFile := file + ".crt"
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n"+
		"clusters: [{name: a, cluster: {server: %s/events, certificate-authority: %s}}]\nusers: [{name: a, user: {token: of-events}}]\n", r.URL, caFile)
	for name, data := range map[string][]byte{file: []byte(text), caFile: ca} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

func (r *receiver) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw})
}

// A server stops though its webhook is away, which is asked again for minutes.
func TestWebhookAway(t *testing.T) {
	hook := newReceiver(t, 0)
	o := Defaults()
	o.Log.Path = Off
	o.Webhook.ConfigFile = hook.kubeconfig(t, hook.ca())
	hook.Close()
	r, err := Open(o, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	if err := r.Backend.Run(stop); err != nil {
		t.Fatal(err)
	}
	r.Backend.ProcessEvents(numbered(0))
	close(stop)
	ended := make(chan struct{})
	go func() { defer close(ended); r.Backend.Shutdown() }()
	select {
	case <-ended:
	case <-time.After(time.Minute): // five tries, each half as long again after the one before, take more than that
		t.Fatal("the webhook holds up the end")
	}
}

// TestWebhook proves that events reach a real HTTPS server, also one that fails at first, that a stopping server sends what it
// still has, and that secrets are taken out here too.
func TestWebhook(t *testing.T) {
	for _, mode := range Modes() {
		t.Run(mode, func(t *testing.T) {
			hook := newReceiver(t, 1)
			o := Defaults()
			o.Log.Path = Off
			o.Webhook.ConfigFile, o.Webhook.Mode, o.Webhook.InitialBackoff = hook.kubeconfig(t, hook.ca()), mode, time.Millisecond
			o.Webhook.Batch.MaxBatchWait = time.Hour // so that only the stop sends what is there
			r, err := Open(o, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			stop := make(chan struct{})
			if err := r.Backend.Run(stop); err != nil {
				t.Fatal(err)
			}
			const n = 5
			for i := range n {
				ev := numbered(i)
				ev.RequestURI = "/x?access_token=hunter2"
				if !r.Backend.ProcessEvents(ev) {
					t.Error("not sent")
				}
			}
			close(stop)
			r.Backend.Shutdown()
			if got := len(hook.got); got != n {
				t.Fatalf("%d events arrived, want %d", got, n)
			}
			missing := map[types.UID]bool{}
			for i := range n {
				missing[numbered(i).AuditID] = true
			}
			for range n {
				e := <-hook.got
				if !missing[e.AuditID] || e.RequestURI != "/x?access_token=REDACTED" {
					t.Errorf("%+v", e)
				}
				delete(missing, e.AuditID)
			}
		})
	}
	t.Run("a server that is not the one", func(t *testing.T) {
		hook, other := newReceiver(t, 0), newReceiver(t, 0)
		wrong := []byte(strings.ReplaceAll(string(other.ca()), "A", "B"))
		o := Defaults()
		o.Log.Path = Off
		o.Webhook.ConfigFile = hook.kubeconfig(t, wrong)
		if _, err := Open(o, t.TempDir()); err == nil || !strings.Contains(err.Error(), "--audit-webhook-config-file "+o.Webhook.ConfigFile) {
			t.Errorf("%v", err)
		}
		o.Webhook.ConfigFile = "/none/such"
		if _, err := Open(o, t.TempDir()); err == nil || !strings.Contains(err.Error(), "--audit-webhook-config-file /none/such") {
			t.Errorf("%v", err)
		}
	})
	t.Run("strict fails requests that cannot be recorded", func(t *testing.T) {
		hook := newReceiver(t, 0)
		o := Defaults()
		o.Log.Path = Off
		o.Webhook.ConfigFile, o.Webhook.Mode, o.Webhook.InitialBackoff = hook.kubeconfig(t, hook.ca()), BlockingStrict, time.Millisecond
		r, err := Open(o, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		hook.Close()
		if r.Backend.ProcessEvents(numbered(1)) {
			t.Error("a lost event was taken for recorded")
		}
	})
}

// TestRotation proves that the log is bounded, and that all its files are for their owner alone.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	o := Defaults()
	o.Log.MaxSize, o.Log.MaxBackups = 1, 2
	watch, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	r, err := Open(o, dir)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Dir(DefaultPath(dir))
	if err := watch.Add(folder); err != nil {
		t.Fatal(err)
	}
	ev := numbered(0)
	ev.UserAgent = strings.Repeat("x", 1000)
	for i := range 5 * 1024 {
		ev.User.Username = fmt.Sprint("user-", i%60) // nobody writes more than their share
		if !r.Backend.ProcessEvents(ev) {
			t.Fatal("not recorded")
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	bounded := func() bool { // by the library, beside the writing
		files, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			info, err := f.Info()
			if err != nil {
				return false // on its way out
			}
			if info.Mode() != 0o600 || info.Size() > 1<<20 {
				t.Fatalf("%s: mode %v, %d bytes", f.Name(), info.Mode(), info.Size())
			}
			if f.Name() != "audit.log" && !strings.HasSuffix(f.Name(), ".log.gz") {
				return false
			}
		}
		return len(files) == 3
	}
	give := time.After(30 * time.Second)
	for !bounded() {
		select {
		case <-watch.Events:
		case <-give:
			files, _ := os.ReadDir(folder)
			t.Fatalf("there are %v; want the log and two compressed files", files)
		}
	}
}
