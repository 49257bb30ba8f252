// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/api"
	"github.com/wherryproject/wherry/internal/audit"
	"github.com/wherryproject/wherry/internal/audit/trail"
	"github.com/wherryproject/wherry/internal/pki"
	"github.com/wherryproject/wherry/internal/store"
)

// attempt is something that somebody must not be able to do.
type attempt struct {
	who, what string // the attacker, and the aim
	verb      string // of HTTP
	path      string // sent as it is
	body      string
	header    map[string]string
	codes     []int // that refuse it; none: 403
}

// castle is a server with something to steal, and attackers with a foot in the door.
type castle struct {
	t         *testing.T
	srv       *api.Server
	admin     kubernetes.Interface
	log       string
	stop      func() // ends the server
	attackers map[string]*http.Client
	tokens    map[string]string
}

// A namespace-limited user, an anonymous client, a stolen node certificate and a pod's token try what they must not be
// able to do: each attempt is refused, and each is on record with its answer. (EC-20, EC-22, IX-07; ATTACK A2, A3, A4,
// A7, A8, A10, A11, A27)
func TestAttacks(t *testing.T) {
	c := newCastle(t)
	rows := slices.Concat(c.limitedUser(), c.debugger(), c.anybody(), c.namespaceAdmin(), c.levels(), c.anonymous(),
		c.stolenNode(), c.podToken())
	if len(rows) < 200 {
		t.Fatalf("only %d attempts", len(rows))
	}
	answered := map[string]int{} // by audit id
	for _, a := range rows {
		t.Run(a.who+": "+a.what, func(t *testing.T) {
			code, id, said := c.try(t, a)
			want := a.codes
			if len(want) == 0 {
				want = []int{http.StatusForbidden}
			}
			if !slices.Contains(want, code) {
				t.Errorf("%s %s: %d, want %v: %.300s", a.verb, a.path, code, want, said)
			}
			if id == "" {
				t.Fatalf("%s %s: the answer has no audit id", a.verb, a.path)
			}
			answered[id] = code
		})
	}
	c.unharmed()
	c.stop() // what strangers were refused is summed up, and put on record at the end at the latest
	recorded, strangers := c.recorded(c.log), c.recorded(trail.Refused(c.log))
	if len(strangers.codes) == 0 || len(recorded.codes) == 0 {
		t.Errorf("%d records, and %d of strangers", len(recorded.codes), len(strangers.codes))
	}
	unknown := 0
	for id, code := range answered {
		if got, ok := recorded.codes[id]; ok && got != code {
			t.Errorf("request %s was answered with %d; on record is %d", id, code, got)
		} else if !ok && code != http.StatusUnauthorized {
			t.Errorf("request %s was answered with %d; nothing is on record", id, code)
		} else if !ok {
			unknown++
		}
	}
	if strangers.requests != unknown {
		t.Errorf("%d requests of strangers were refused; on record are %d", unknown, strangers.requests)
	}
}

func newCastle(t *testing.T) *castle {
	dir := t.TempDir()
	etcd, err := store.Start(t.Context(), store.Config{Dir: filepath.Join(dir, "etcd")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := etcd.Close(); err != nil {
			t.Error(err)
		}
	})
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	recording := audit.Defaults()
	recording.PolicyFile = write("policy.yaml",
		"apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n")
	recording.Log.Path = filepath.Join(dir, "audit.log")
	tokens := write("tokens.csv",
		"eve-token,eve,1,\"guests\"\nadam-token,adam,2,\"guests\"\ndave-token,dave,3,\"guests\"\ndeb-token,deb,4,\"guests\"\n")
	srv, stop := serve(t, api.Config{DataDir: dir, BindAddress: "127.0.0.1", EtcdServers: []string{etcd.Endpoint()},
		TokenAuthFile: tokens, Audit: &recording})
	t.Cleanup(stop)
	c := &castle{t: t, srv: srv, stop: stop, admin: clientOf(t, configOf(t, srv)), log: recording.Log.Path,
		attackers: map[string]*http.Client{}, tokens: map[string]string{}}
	c.furnish()
	for _, who := range []string{"eve", "adam", "dave", "deb"} {
		c.enlist(who, nil, who+"-token")
	}
	return c
}

// furnish makes what is worth stealing: namespace mine, of the attackers, and theirs, of others; pods on two nodes.
func (c *castle) furnish() {
	t, ctx := c.t, c.t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, ns := range []string{"mine", "theirs"} {
		_, err := c.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}},
			metav1.CreateOptions{})
		must(err)
		_, err = c.admin.CoreV1().ServiceAccounts(ns).Create(ctx,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
		must(err)
		for _, name := range []string{"used", "unused"} {
			_, err = c.admin.CoreV1().Secrets(ns).Create(ctx,
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name},
					StringData: map[string]string{"k": "treasure"}}, metav1.CreateOptions{})
			must(err)
		}
	}
	for _, n := range []string{"node-1", "node-2"} {
		_, err := c.admin.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n}},
			metav1.CreateOptions{})
		must(err)
	}
	for ns, node := range map[string]string{"mine": "node-1", "theirs": "node-2"} {
		p := pod("p")
		p.Spec.Volumes = []corev1.Volume{{Name: "v",
			VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "used"}}}}
		must(bindPod(t, c.admin, createPod(t, c.admin, ns, p), node))
	}
	bind := func(who, ns, role, kind string) {
		_, err := c.admin.RbacV1().RoleBindings(ns).Create(ctx,
			&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: who + "-" + role},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who}}},
			metav1.CreateOptions{})
		must(err)
	}
	bind("eve", "mine", "edit", "ClusterRole")
	bind("adam", "mine", "admin", "ClusterRole")
	bind("deb", "mine", "debug", "ClusterRole")
	_, err := c.admin.RbacV1().Roles("mine").Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "looker"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods", "pods/exec", "pods/attach", "pods/portforward"},
				Verbs: []string{"get", "list", "watch"}}}}, metav1.CreateOptions{})
	must(err)
	bind("dave", "mine", "looker", "Role")
	_, err = c.admin.RbacV1().Roles("mine").Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "powerful"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}}, metav1.CreateOptions{})
	must(err)
}

// enlist makes an attacker with a client certificate, a token, or neither.
func (c *castle) enlist(who string, cert *tls.Certificate, token string) {
	config := rest.AnonymousClientConfig(configOf(c.t, c.srv))
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		c.t.Fatal(err)
	}
	if cert != nil {
		tlsConfig.Certificates = []tls.Certificate{*cert}
	}
	transport := &http.Transport{TLSClientConfig: tlsConfig}
	c.t.Cleanup(transport.CloseIdleConnections)
	c.attackers[who], c.tokens[who] = &http.Client{Transport: transport, Timeout: 30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, token
}

// certificate makes a client certificate, as one that was stolen or forged.
func (c *castle) certificate(ca *pki.CA, user string, groups ...string) *tls.Certificate {
	certPEM, keyPEM, err := ca.Client(user, groups, time.Hour)
	if err != nil {
		c.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		c.t.Fatal(err)
	}
	return &pair
}

// token asks for a token of a service account, bound to a pod if one is given.
func (c *castle) token(ns, account string, bound *corev1.Pod, audiences ...string) string {
	seconds := int64(3600)
	req := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds,
		Audiences: audiences}}
	if bound != nil {
		req.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1",
			Name: bound.Name, UID: bound.UID}
	}
	made, err := c.admin.CoreV1().ServiceAccounts(ns).CreateToken(c.t.Context(), account, req, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return made.Status.Token
}

// try makes the request and returns the answer's code and audit id.
func (c *castle) try(t *testing.T, a attempt) (code int, id, said string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), a.verb, c.srv.URL(), bytes.NewBufferString(a.body))
	if err != nil {
		t.Fatal(err)
	}
	path, query, _ := strings.Cut(a.path, "?")
	req.URL.Opaque = "//" + req.URL.Host + path // as it is: net/http would clean it
	req.URL.RawQuery = query
	if a.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.verb == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	if token := c.tokens[a.who]; token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range a.header {
		req.Header.Set(name, value)
	}
	resp, err := c.attackers[a.who].Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	return resp.StatusCode, resp.Header.Get("Audit-Id"), string(text)
}

// record is what is in an audit log.
type record struct {
	codes    map[string]int // the answer's code by audit id
	requests int            // with those of which only the number is on record
}

// recorded reads an audit log.
func (c *castle) recorded(path string) record {
	file, err := os.Open(path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer file.Close()
	all := record{codes: map[string]int{}}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditv1.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			c.t.Fatalf("audit log: %v: %s", err, lines.Text())
		}
		if strings.Contains(lines.Text(), "treasure") {
			c.t.Errorf("a secret is in the audit log: %s", lines.Text())
		}
		if e.ResponseStatus != nil {
			all.codes[string(e.AuditID)] = int(e.ResponseStatus.Code)
		}
		all.requests += max(1, count(c.t, e))
	}
	if err := lines.Err(); err != nil {
		c.t.Fatal(err)
	}
	return all
}

// count is how many requests a record stands for, 0 if it does not say.
func count(t *testing.T, e auditv1.Event) int {
	t.Helper()
	text := e.Annotations[trail.Count]
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("record %s: %v", e.AuditID, err)
	}
	return n
}

// unharmed: everything is as it was.
func (c *castle) unharmed() {
	ctx := c.t.Context()
	for ns, node := range map[string]string{"mine": "node-1", "theirs": "node-2"} {
		p, err := c.admin.CoreV1().Pods(ns).Get(ctx, "p", metav1.GetOptions{})
		if err != nil || p.Spec.NodeName != node || len(p.Spec.EphemeralContainers) > 0 || p.DeletionTimestamp != nil ||
			len(p.Status.ContainerStatuses) > 0 {
			c.t.Errorf("pod %s/p was changed: %v %v", ns, p, err)
		}
		all, err := c.admin.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err != nil || len(all.Items) != 1 {
			c.t.Errorf("namespace %s has other pods than it had: %v", ns, err)
		}
	}
	for _, n := range []string{"node-1", "node-2"} {
		node, err := c.admin.CoreV1().Nodes().Get(ctx, n, metav1.GetOptions{})
		if err != nil || len(node.Spec.Taints) > 0 || len(node.Status.Conditions) > 0 {
			c.t.Errorf("node %s was changed: %v %v", n, node, err)
		}
	}
	bindings, err := c.admin.RbacV1().RoleBindings("mine").List(ctx, metav1.ListOptions{})
	if err != nil || len(bindings.Items) != 4 {
		c.t.Errorf("role bindings: %v, %v", bindings, err)
	}
}

func podJSON(name, more string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q},"spec":{"containers":[{"name":"c","image":"x"}]%s}}`, name, more)
}
