// SPDX-License-Identifier: Apache-2.0

package trail

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authnv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/wherryproject/wherry/internal/leaktest"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// event is a pod's creation by jane, n seconds after noon.
func event(n int, changes ...func(*auditv1.Event)) *auditv1.Event {
	at := noon.Add(time.Duration(n) * time.Second)
	e := &auditv1.Event{
		AuditID: types.UID(fmt.Sprint("id-", n)), Stage: auditv1.StageResponseComplete, Level: auditv1.LevelMetadata,
		Verb: "create", RequestURI: "/api/v1/namespaces/shop/pods", User: authnv1.UserInfo{Username: "jane"},
		ObjectRef: &auditv1.ObjectReference{Resource: "pods", Namespace: "shop", Name: "web",
			APIVersion: "v1"},
		ResponseStatus:           &metav1.Status{Code: 201},
		RequestReceivedTimestamp: metav1.NewMicroTime(at), StageTimestamp: metav1.NewMicroTime(at),
	}
	for _, change := range changes {
		change(e)
	}
	return e
}

func line(t testing.TB, e *auditv1.Event) string {
	t.Helper()
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func write(t testing.TB, file string, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func zipped(t testing.TB, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestRead proves that a log is read with what it was rotated into, in order, and that what cannot be read costs no
// more than itself.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.log")
	at := func(name string) string { return filepath.Join(dir, name) }
	write(t, at("audit-2026-03-01T00-00-00.000.log.gz"), zipped(t, line(t, event(1))))
	write(t, at("audit-2026-03-02T00-00-00.000.log"), line(t, event(2)))
	write(t, at("audit-2026-03-02T00-00-00.000.log.gz"), "half of wh") // being made when the server was killed
	whole := zipped(t, line(t, event(3))+line(t, event(4)))
	write(t, at("audit-2026-03-03T00-00-00.000.log.gz"), whole[:len(whole)-6])
	write(t, path, line(t, event(5))+"{\"kind\":\"Ev\nnoise\n\n"+line(t, event(6))+`{"kind":"Event","audi`)
	write(t, at("audit-notes.log"), "no log")
	write(t, at("other.log"), line(t, event(9)))
	files, err := Files(path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, filepath.Base(f))
	}
	want := []string{"audit-2026-03-01T00-00-00.000.log.gz", "audit-2026-03-02T00-00-00.000.log",
		"audit-2026-03-03T00-00-00.000.log.gz", "audit.log"}
	if !slices.Equal(names, want) {
		t.Fatalf("files %v\nwant %v", names, want)
	}
	var ids []string
	unreadable, err := Read(append(files, at("gone.log")), Filter{}, func(e Event) error {
		ids = append(ids, string(e.AuditID))
		if !json.Valid(e.Line) {
			t.Errorf("line %q", e.Line)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(ids, " "); got != "id-1 id-2 id-3 id-4 id-5 id-6" || unreadable != 3 {
		t.Errorf("%s, %d unreadable", got, unreadable)
	}
	stop := errors.New("enough")
	if _, err := Read(files, Filter{}, func(Event) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
	if _, err := Files(at("none/audit.log")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if files, err := Files(at("never.log")); err != nil || len(files) > 0 {
		t.Errorf("%v %v", files, err)
	}
}

// A line longer than any event is left out, and what comes after it is read.
func TestReadLongLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	write(t, file, "{"+strings.Repeat("x", maxLine+10)+"}\n"+line(t, event(1)))
	n := 0
	unreadable, err := Read([]string{file}, Filter{}, func(Event) error { n++; return nil })
	if err != nil || n != 1 || unreadable != 1 {
		t.Errorf("%d events, %d unreadable, %v", n, unreadable, err)
	}
}

// Each way to ask shows the events it is about, and no others.
func TestFilter(t *testing.T) {
	jane := event(10)
	as := func(name string) func(*auditv1.Event) {
		return func(e *auditv1.Event) { e.ImpersonatedUser = &authnv1.UserInfo{Username: name} }
	}
	code := func(c int32) func(*auditv1.Event) { return func(e *auditv1.Event) { e.ResponseStatus.Code = c } }
	for name, tc := range map[string]struct {
		filter Filter
		event  *auditv1.Event
		want   bool
	}{
		"all":               {Filter{}, jane, true},
		"pod":               {Filter{Resource: "pods", Name: "web", Namespace: "shop"}, jane, true},
		"another pod":       {Filter{Resource: "pods", Name: "we"}, jane, false},
		"another namespace": {Filter{Resource: "pods", Name: "web", Namespace: "sho"}, jane, false},
		"another kind":      {Filter{Resource: "services", Name: "web"}, jane, false},
		"a name the server made": {Filter{Name: "web-x1"}, event(1, func(e *auditv1.Event) {
			e.ObjectRef.Name = ""
			e.Annotations = map[string]string{GeneratedName: "web-x1"}
		}), true},
		"no object": {Filter{Resource: "pods"}, event(1, func(e *auditv1.Event) { e.ObjectRef = nil }),
			false},
		"user":             {Filter{Users: []string{"joe", "jane"}}, jane, true},
		"another user":     {Filter{Users: []string{"joe"}}, jane, false},
		"impersonated":     {Filter{Users: []string{"joe"}}, event(1, as("joe")), true},
		"who impersonates": {Filter{Users: []string{"jane"}}, event(1, as("joe")), true},
		"verb":             {Filter{Verbs: []string{"create"}}, jane, true},
		"another verb":     {Filter{Verbs: []string{"delete", "get"}}, jane, false},
		"since":            {Filter{Since: noon.Add(10 * time.Second)}, jane, true},
		"before":           {Filter{Since: noon.Add(11 * time.Second)}, jane, false},
		"refused":          {Filter{Refused: true}, event(1, code(403)), true},
		"unknown client":   {Filter{Refused: true}, event(1, code(401)), true},
		"not refused":      {Filter{Refused: true}, event(1, code(404)), false},
		"failed":           {Filter{Failed: true}, event(1, code(404)), true},
		"went well":        {Filter{Failed: true}, jane, false},
		"no answer, none refused": {Filter{Refused: true}, event(1, func(e *auditv1.Event) { e.ResponseStatus = nil }),
			false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.filter.Takes(tc.event); got != tc.want {
				t.Errorf("%t, want %t", got, tc.want)
			}
			if tc.want && !tc.filter.mayTake([]byte(line(t, tc.event))) {
				t.Error("the quick look at the line leaves it out")
			}
		})
	}
}

// TestSay proves what a person reads of each sort of request (EC-22, DC-03, IX-07).
func TestSay(t *testing.T) {
	on := func(subresource string) func(*auditv1.Event) {
		return func(e *auditv1.Event) { e.ObjectRef.Subresource = subresource }
	}
	uri := func(u string) func(*auditv1.Event) { return func(e *auditv1.Event) { e.RequestURI = u } }
	verb := func(v string) func(*auditv1.Event) { return func(e *auditv1.Event) { e.Verb = v } }
	notes := func(pairs ...string) func(*auditv1.Event) {
		return func(e *auditv1.Event) {
			e.Annotations = map[string]string{}
			for i := 0; i < len(pairs); i += 2 {
				e.Annotations["debug.wherry.dev/"+pairs[i]] = pairs[i+1]
			}
		}
	}
	object := func(group, resource, name string) func(*auditv1.Event) {
		return func(e *auditv1.Event) {
			e.ObjectRef = &auditv1.ObjectReference{APIGroup: group, Resource: resource, Name: name}
		}
	}
	answer := func(code int32) func(*auditv1.Event) { return func(e *auditv1.Event) { e.ResponseStatus.Code = code } }
	took := func(d time.Duration) func(*auditv1.Event) {
		return func(e *auditv1.Event) { e.StageTimestamp = metav1.NewMicroTime(e.RequestReceivedTimestamp.Add(d)) }
	}
	for name, tc := range map[string]struct {
		event        *auditv1.Event
		what, result string
	}{
		"create": {event(1), "create pods/web", "201"},
		"dry":    {event(1, uri("/api/v1/namespaces/shop/pods?dryRun=All")), "create pods/web (dry run)", "201"},
		"group": {event(1, verb("delete"), object("rbac.authorization.k8s.io", "roles", "r"), answer(200)),
			"delete roles.rbac.authorization.k8s.io/r", "200"},
		"all of": {event(1, verb("deletecollection"), object("", "pods", ""), uri("/api/v1/pods?labelSelector=a%3Db")),
			"delete all pods with labels a=b", "201"},
		"status": {event(1, verb("patch"), on("status")), "patch status of pods/web", "201"},
		"exec": {event(1, on("exec"), answer(101), took(65*time.Second), uri("/x?command=sh&command=-c&command=echo+a"),
			notes("kind", "Exec", "container", "main", "command", `["sh","-c","echo a"]`, "exit-code", "3")),
			"exec in pods/web -c main: sh -c 'echo a'", "101 exit 3 after 1m5s"},
		"exec refused": {event(1, on("exec"), uri("/x?container=main&command=id"), func(e *auditv1.Event) {
			e.ResponseStatus = &metav1.Status{Code: 403, Reason: "Forbidden", Message: "no"}
		}), "exec in pods/web -c main: id", "403 Forbidden"},
		"exec goes on": {event(1, on("exec"), answer(101),
			func(e *auditv1.Event) { e.Stage = auditv1.StageResponseStarted }), "exec in pods/web", "101 open"},
		"debug session": {event(1, on("exec"), answer(101), notes("kind", "EphemeralContainer", "container", "debug",
			"image", "busybox", "target", "main", "run", "2", "command", `["sh"]`)),
			"debug pods/web: container debug of image busybox, target main, run 2: sh", "101"},
		"debug session refused": {event(1, on("exec"), answer(403),
			uri("/x?ephemeralContainerName=d&ephemeralContainerImage=evil&ephemeralContainerTarget=main&command=sh")),
			"debug pods/web: container d of image evil, target main: sh", "403 Forbidden"},
		"a dollar of a spec": {event(1, on("exec"), answer(101),
			notes("kind", "EphemeralContainer", "container", "d", "image", "i", "command",
				`["sh","-c","echo $$$$ $(A)"]`)),
			"debug pods/web: container d of image i: sh -c 'echo $$ $(A)'", "101"},
		"dollars of an exec": {event(1, on("exec"), answer(101), notes("kind", "Exec", "command", `["echo","$$"]`)),
			"exec in pods/web: echo '$$'", "101"},
		"an added dollar": {event(1, verb("patch"), on("ephemeralcontainers"), answer(200),
			notes("added", `[{"name":"d","image":"i","command":["echo","$$$$"]}]`)),
			"add debug container to pods/web: d of image i: echo '$$'", "200"},
		"image exec": {event(1, on("exec"), answer(101), notes("kind", "ImageExec", "image", "tools", "writable",
			"true", "command", `["ls","/c"]`, "end", "Refused: no pull")),
			"image exec in pods/web: image tools, writable: ls /c", "101 Refused: no pull"},
		"image exec refused": {event(1, on("exec"), answer(403), uri("/x?image=evil&command=ls&writable=true")),
			"image exec in pods/web: image evil, writable: ls", "403 Forbidden"},
		"debug container": {event(1, verb("patch"), on("ephemeralcontainers"), answer(200),
			notes("added",
				`[{"name":"d","image":"busybox","target":"main","command":["sh","-i"]},{"name":"e","image":"x"}]`)),
			"add debug container to pods/web: d of image busybox, target main: sh -i; e of image x", "200"},
		"same containers": {event(1, verb("update"), on("ephemeralcontainers")),
			"update ephemeralcontainers of pods/web", "201"},
		"stop": {event(1, verb("delete"), on("debug"), uri("/api/v1/namespaces/shop/pods/web/debug/d")),
			"stop debug container d of pods/web", "201"},
		"attach": {event(1, on("attach"), notes("container", "main")), "attach to pods/web -c main", "201"},
		"log": {event(1, on("log"), verb("get"), uri("/x/log?container=main&follow=true"), answer(200),
			took(90*time.Second)), "read the log of pods/web -c main", "200 after 1m30s"},
		"forward": {event(1, on("portforward")), "port-forward to pods/web", "201"},
		"proxy": {event(1, on("proxy"), verb("get"), uri("/api/v1/namespaces/shop/pods/web/proxy/admin?x=1")),
			"proxy to pods/web: get /admin", "201"},
		"bind":  {event(1, on("binding")), "bind pods/web", "201"},
		"evict": {event(1, on("eviction")), "evict pods/web", "201"},
		"token": {event(1, object("", "serviceaccounts", "default"), on("token")),
			"create a token for serviceaccounts/default", "201"},
		"no object": {event(1, verb("put"), uri("/debug/flags/v"), func(e *auditv1.Event) { e.ObjectRef = nil }),
			"put /debug/flags/v", "201"},
		"panic": {event(1, func(e *auditv1.Event) { e.Stage = auditv1.StagePanic }), "create pods/web",
			"500 panic"},
		"no terminal obeys": {event(1, on("exec"), notes("kind", "Exec", "command", `["\u001b[2Jrm","a\nb"]`),
			answer(101)),
			`exec in pods/web: '\x1b[2Jrm' 'a\nb'`, "101"},
		"quotes": {event(1, on("exec"), notes("kind", "Exec", "command", `["it's",""]`), answer(101)),
			`exec in pods/web: 'it'\''s' ''`, "101"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Say(tc.event)
			if got.What != tc.what || got.Result != tc.result {
				t.Errorf("%q %q\nwant %q %q", got.What, got.Result, tc.what, tc.result)
			}
		})
	}
	if got := Say(event(1, func(e *auditv1.Event) {
		e.ResponseStatus = &metav1.Status{Code: 500,
			Message: `Internal error occurred: OCI runtime exec failed: exec failed: unable to start container process: exec: "ls": not found: unknown`}
	})).Message; got != `exec: "ls": not found` {
		t.Error(got)
	}
	e := event(1)
	e.ImpersonatedUser = &authnv1.UserInfo{Username: "joe"}
	if got := Say(e).User; got != "jane as joe" {
		t.Error(got)
	}
	if got := Say(event(1, func(e *auditv1.Event) { e.User.Username = "" })).User; got != "(nobody)" {
		t.Error(got)
	}
}

// TestMerge proves that begin and end of a request are one entry, where it began.
func TestMerge(t *testing.T) {
	var m Merge
	begin := event(1, func(e *auditv1.Event) { e.Stage = auditv1.StageResponseStarted })
	m.Add(Say(begin))
	m.Add(Say(event(3)))
	m.Add(Say(event(2)))
	m.Add(Say(event(1)))
	m.Add(Say(event(4, func(e *auditv1.Event) { e.Stage = auditv1.StageResponseStarted })))
	var got []string
	for _, e := range m.Last(-1) {
		got = append(got, fmt.Sprint(e.ID, e.Open))
	}
	if want := "id-1false id-2false id-3false id-4true"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
	if last := m.Last(2); len(last) != 2 || last[0].ID != "id-3" {
		t.Errorf("%v", last)
	}
}

// TestFollow proves that what comes is read as it comes, over rotation, and whole lines only.
func TestFollow(t *testing.T) {
	defer leaktest.None(t)
	path := filepath.Join(t.TempDir(), "audit.log")
	write(t, path, line(t, event(1)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ids, ready, done := make(chan string, 10), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- Follow(ctx, path, Filter{}, func(e Event) error { ids <- string(e.AuditID); return nil },
			func() { close(ready) })
	}()
	<-ready
	expect := func(want string) {
		t.Helper()
		select {
		case got := <-ids:
			if got != want {
				t.Fatalf("read %s, want %s", got, want)
			}
		case err := <-done:
			t.Fatalf("following ended: %v", err)
		}
	}
	expect("id-1")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	two := line(t, event(2))
	for _, part := range []string{two[:20], two[20:], line(t, event(3))} {
		if _, err := f.WriteString(part); err != nil {
			t.Fatal(err)
		}
	}
	expect("id-2")
	expect("id-3")
	if _, err := f.WriteString(line(t, event(4))); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := os.Rename(path, strings.TrimSuffix(path, ".log")+"-2026-03-04T00-00-00.000.log"); err != nil {
		t.Fatal(err)
	}
	write(t, path, line(t, event(5)))
	expect("id-4")
	expect("id-5")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := Follow(t.Context(), filepath.Join(t.TempDir(), "none", "audit.log"), Filter{}, nil, nil); err == nil {
		t.Error("a folder that is not there was followed")
	}
}
