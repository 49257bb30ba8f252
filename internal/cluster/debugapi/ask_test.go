// SPDX-License-Identifier: Apache-2.0

package debugapi_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/wherryproject/wherry/internal/cluster/debugapi/rights"
	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/streams"
)

// plain makes a request that is no WebSocket: what stands in the way of a session is told all the same.
func plain(t *testing.T, config *rest.Config, method, path string, q url.Values) (string, error) {
	t.Helper()
	r := clientOf(t, config).RESTClient().Verb(method).AbsPath(path)
	for name, values := range q {
		for _, v := range values {
			r.Param(name, v)
		}
	}
	result := r.Do(t.Context())
	text, _ := result.Raw() // the error's words are in the answer, which Error reads
	return string(text), result.Error()
}

// dial opens a WebSocket, or returns the answer that is none.
func dial(t *testing.T, config *rest.Config, path string, q url.Values) (*websocket.Conn, *http.Response) {
	t.Helper()
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		t.Fatal(err)
	}
	d := &websocket.Dialer{TLSClientConfig: tlsConfig, Subprotocols: []string{streams.V5}}
	conn, resp, err := d.DialContext(t.Context(), strings.Replace(config.Host, "https", "wss", 1)+path+"?"+q.Encode(),
		nil)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	} else if resp == nil {
		t.Fatal(err)
	}
	return conn, resp
}

func refusedWith(t *testing.T, what string, err error, code int, words ...string) {
	t.Helper()
	status, ok := err.(apierrors.APIStatus)
	if !ok || int(status.Status().Code) != code {
		t.Errorf("%s: got %v, want a refusal with %d", what, err, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not say %q", what, err, w)
		}
	}
}

// claim makes a pod with a claim that is bound to a volume.
func (c *chain) claim(t *testing.T, namespace, name string, source corev1.PersistentVolumeSource) {
	t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	_, err := c.admin.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name},
		Spec:       corev1.PersistentVolumeSpec{Capacity: size, AccessModes: modes, PersistentVolumeSource: source}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.admin.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes, VolumeName: namespace + "-" + name,
			Resources: corev1.VolumeResourceRequirements{Requests: size}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.pod(t, namespace, name, c.node, func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	})
}

// Nobody gets more than his roles in the pod's namespace allow: kube-apiserver refuses by the path, and the API what
// cannot be told from it, in words that name the role that is missing. Proves DA-04 and DA-05.
func TestRoles(t *testing.T) {
	c := newChain(t)
	shop, other := c.place(t), c.place(t)
	c.pod(t, shop, "web", c.node, nil)
	c.pod(t, other, "web", c.node, nil)
	c.pod(t, shop, "net", c.node, func(p *corev1.Pod) { p.Spec.HostNetwork = true })
	c.pod(t, shop, "root", c.node, func(p *corev1.Pod) {
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	})
	c.claim(t, shop, "folder", corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/srv"}})
	c.claim(t, shop, "disk", corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nas", Path: "/srv"}})
	look, _ := c.somebody(t, shop, rights.RoleLook)
	debug, jane := c.somebody(t, shop, rights.RoleDebug)
	all, _ := c.somebody(t, shop, rights.RolePrivileged)
	half := person(t, "half")
	c.give(t, "half", shop, userSubjects("half"), rulesOf("get pods/shell,pods/exec,pods/files.debug.wherry.dev",
		"use profiles.debug.wherry.dev general"))

	out := url.Values{"stdout": {"true"}}
	with := func(name, value string) url.Values { return url.Values{"stdout": {"true"}, name: {value}} }
	for _, d := range []struct {
		what   string
		config *rest.Config
		path   string
		q      url.Values
		words  []string
	}{
		{"a shell for who may look", look, path(shop, "web", wire.Shell), out, []string{"pods/shell"}},
		{"a pod of another namespace", debug, path(other, "web", wire.Shell), out, []string{"pods/shell", other}},
		{"a shell for who may get it alone", half, path(shop, "web", wire.Shell), out,
			[]string{"half may not create pods/shell.debug.wherry.dev", shop, "ClusterRole wherry-debug"}},
		{"an image for who may get it alone", half, path(shop, "web", wire.Exec), with("image", "a"),
			[]string{"half may not create pods/exec.debug.wherry.dev", "ClusterRole wherry-debug"}},
		{"files in for who may get them alone", half, path(shop, "web", wire.Files),
			url.Values{"op": {"unpack"}, "path": {"/tmp"}},
			[]string{"half may not create pods/files.debug.wherry.dev"}},
		{"a profile that is too much", debug, path(shop, "web", wire.Shell), with("profile", "sysadmin"),
			[]string{jane + ` may not use profiles.debug.wherry.dev "sysadmin"`, shop,
				"ClusterRole wherry-privileged"}},
		{"the machine's network", debug, path(shop, "net", wire.Shell), out,
			[]string{`profiles.debug.wherry.dev "host"`, "network", "ClusterRole wherry-privileged"}},
		{"a privileged container", debug, path(shop, "root", wire.Exec), with("image", "a"),
			[]string{`profiles.debug.wherry.dev "host"`, "container main is privileged"}},
		{"a claim that is a folder of the machine", debug, path(shop, "folder", wire.Shell), out,
			[]string{`profiles.debug.wherry.dev "host"`, "volume data is a folder of the pod's machine, by its claim"}},
		{"files of a privileged container", look, path(shop, "root", wire.Files), url.Values{"path": {"/etc"}},
			[]string{`profiles.debug.wherry.dev "host"`}},
	} {
		_, err := plain(t, d.config, http.MethodGet, d.path, d.q)
		refusedWith(t, d.what, err, http.StatusForbidden, d.words...)
	}
	_, err := plain(t, look, http.MethodDelete, path(shop, "web", wire.Sessions), nil)
	refusedWith(t, "an end for who may look", err, http.StatusForbidden, "pods/sessions")
	if c.agent.count() != 0 {
		t.Fatalf("the agent was asked for %+v", c.agent.last(t))
	}
	for _, q := range []url.Values{{"profile": {"sysadmin"}}, {"writable": {"true"}}} {
		if got, err := run(t, all, path(shop, "net", wire.Shell), q, ""); err != nil || got != "hello from shell\n" {
			t.Errorf("who may do all: %q, %v", got, err)
		}
	}
	if got, err := run(t, debug, path(shop, "disk", wire.Shell), url.Values{}, ""); err != nil || got != "hello from shell\n" {
		t.Errorf("a claim that is no folder of the machine: %q, %v", got, err)
	}
	if got, err := run(t, debug, path(shop, "web", wire.Exec), url.Values{"image": {"alpine"}, "command": {"ls"}},
		""); err != nil || got != "hello from exec\n" || c.agent.last(t).Container != "" {
		t.Errorf("an image: %q, %v", got, err)
	}
}

// Where there is no agent, or what is asked for is not there, the answer says what is wrong. Proves DA-10.
func TestNothingThere(t *testing.T) {
	c := newChain(t)
	shop := c.place(t)
	c.pod(t, shop, "web", c.node, func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "a"}}
	})
	c.pod(t, shop, "far", "node-far", nil)
	c.pod(t, shop, "waits", "", nil)
	jane, _ := c.somebody(t, shop, rights.RoleDebug)
	out := url.Values{"stdout": {"true"}}
	for _, d := range []struct {
		what, pod string
		q         url.Values
		code      int
		words     []string
	}{
		{"no agent", "far", out, http.StatusNotFound, []string{"no agent runs on node node-far", c.namespace}},
		{"no node", "waits", out, http.StatusConflict, []string{"has no node yet"}},
		{"no pod", "nobody", out, http.StatusNotFound, []string{`"nobody" not found`}},
		{"no container", "web", url.Values{"stdout": {"true"}, "container": {"db"}}, http.StatusBadRequest,
			[]string{`"db"`, "first, main"}},
		{"no parameter", "web", url.Values{"stdout": {"true"}, "root": {"true"}}, http.StatusBadRequest,
			[]string{`"root" is unknown`}},
		{"no WebSocket", "web", out, http.StatusBadRequest, []string{"WebSocket"}},
	} {
		_, err := plain(t, jane, http.MethodGet, path(shop, d.pod, wire.Shell), d.q)
		refusedWith(t, d.what, err, d.code, d.words...)
		if d.what == "no agent" && string(apierrors.ReasonForError(err)) != wire.ReasonNoAgent {
			t.Errorf("%s: the reason is %s", d.what, apierrors.ReasonForError(err))
		}
	}
}

// What an agent refuses reaches the client as the agent has said it. Proves DA-07.
func TestAgentRefuses(t *testing.T) {
	c := newChain(t)
	shop := c.place(t)
	c.pod(t, shop, "web", c.node, nil)
	jane, _ := c.somebody(t, shop, rights.RoleDebug)
	const said = `{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"PodNotOnNode","message":"another uid"}`
	refuse := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, said)
	}
	c.agent.instead(t, wire.PathSession, refuse)
	c.agent.instead(t, wire.PathEvidence, refuse)
	_, resp := dial(t, jane, path(shop, "web", wire.Shell), url.Values{"stdout": {"true"}})
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusConflict || !strings.Contains(string(body), `"reason":"PodNotOnNode"`) ||
		!strings.Contains(string(body), "another uid") {
		t.Errorf("got %d %s", resp.StatusCode, body)
	}
	for sub, q := range map[string]url.Values{wire.Evidence: nil, wire.Files: {"path": {"/etc"}}} {
		_, err := plain(t, jane, http.MethodGet, path(shop, "web", sub), q)
		refusedWith(t, sub, err, http.StatusConflict, "another uid")
	}
}

// An archive that breaks off is told as an error as long as it can be, and is cut off after that: nobody takes a part
// for the whole.
func TestArchiveBreaksOff(t *testing.T) {
	c := newChain(t)
	shop := c.place(t)
	c.pod(t, shop, "web", c.node, nil)
	look, _ := c.somebody(t, shop, rights.RoleLook)
	says := func(messages ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			up := websocket.Upgrader{Subprotocols: []string{streams.V5}}
			conn, err := up.Upgrade(w, req, nil)
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			for _, m := range messages {
				_ = conn.WriteMessage(websocket.BinaryMessage, []byte(m))
			}
		}
	}
	failed := string(streams.Status) + `{"status":"Failure","message":"exit code 3"}`
	q := url.Values{"path": {"/nothing"}}
	c.agent.instead(t, wire.PathSession, says(string(streams.Stdout),
		string(streams.Stderr)+"/nothing does not exist\n", failed))
	_, err := plain(t, look, http.MethodGet, path(shop, "web", wire.Files), q)
	refusedWith(t, "a path that is not there", err, http.StatusUnprocessableEntity, "/nothing does not exist")
	for what, h := range map[string]http.HandlerFunc{"a failure": says(string(streams.Stdout)+"half", failed),
		"no end": says(string(streams.Stdout) + "half")} {
		c.agent.instead(t, wire.PathSession, h)
		if got, err := plain(t, look, http.MethodGet, path(shop, "web", wire.Files), q); err == nil {
			t.Errorf("%s: %q is taken for the whole", what, got)
		}
	}
}

// Evidence and sessions are the agent's, and the archive of a plain GET is what the agent has packed: all of it, or an
// error. Proves DA-03 and DA-09.
func TestEvidenceSessionsFiles(t *testing.T) {
	c := newChain(t)
	shop := c.place(t)
	web := c.pod(t, shop, "web", c.node, nil)
	jane, name := c.somebody(t, shop, rights.RoleDebug)
	if got, err := plain(t, jane, http.MethodGet, path(shop, "web", wire.Evidence), nil); err != nil ||
		!strings.Contains(got, `"log":"the end"`) {
		t.Errorf("evidence: %s, %v", got, err)
	}
	if got, err := plain(t, jane, http.MethodGet, path(shop, "web", wire.Sessions), nil); err != nil ||
		!strings.Contains(got, `"id":"0123456789ab"`) {
		t.Errorf("sessions: %s, %v", got, err)
	}
	if got, err := plain(t, jane, http.MethodDelete, path(shop, "web", wire.Sessions),
		url.Values{"session": {"0123456789ab"}}); err != nil || !strings.Contains(got, `"status":"Success"`) {
		t.Errorf("the end of one: %s, %v", got, err)
	}
	c.agent.mu.Lock()
	stopped := c.agent.stopped
	c.agent.mu.Unlock()
	if len(stopped) != 1 || stopped[0] != (wire.Stop{Pod: wire.Pod{Namespace: shop, Name: "web", UID: string(web.UID)},
		ID: "0123456789ab", By: name}) {
		t.Errorf("the agent was told to end %+v", stopped)
	}
	q := url.Values{"path": {"/etc/hosts"}, "container": {"main"}}
	if got, err := plain(t, jane, http.MethodGet, path(shop, "web", wire.Files), q); err != nil ||
		got != "hello from files\n" {
		t.Errorf("an archive: %q, %v", got, err)
	}
	if got, err := run(t, jane, path(shop, "web", wire.Files), url.Values{"op": {"unpack"}, "path": {"/tmp"}},
		"tar"); err != nil || got != "hello from files\nTAR" || !c.agent.last(t).Writable {
		t.Errorf("an archive that goes in: %q, %v", got, err)
	}
}
