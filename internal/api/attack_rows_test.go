// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/pki"
)

const (
	get, post, put, patch, del = http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete

	mine, theirs = "/api/v1/namespaces/mine", "/api/v1/namespaces/theirs"
	rbacAPI      = "/apis/rbac.authorization.k8s.io/v1"
	policies     = "/apis/admissionregistration.k8s.io/v1"
	certificates = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
)

// upgrade is what a WebSocket client asks for.
func upgrade() map[string]string {
	return map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
		"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol": "v5.channel.k8s.io"}
}

// spdy is what the other clients ask for.
func spdy() map[string]string {
	return map[string]string{"Connection": "Upgrade", "Upgrade": "SPDY/3.1",
		"X-Stream-Protocol-Version": "v4.channel.k8s.io"}
}

// limitedUser: eve may edit namespace mine; dave may look at it, and has "get" on what streams.
func (c *castle) limitedUser() []attempt {
	as := func(what, verb, path, body string, codes ...int) attempt {
		return attempt{who: "eve", what: what, verb: verb, path: path, body: body, codes: codes}
	}
	rows := []attempt{
		as("list pods of others", get, theirs+"/pods", ""),
		as("list all pods", get, "/api/v1/pods", ""),
		as("where all pods are", get, "/node-network/pods", ""),
		as("watch where they are", get, "/node-network/pods?watch=1", ""),
		as("list all pods by a selector of a namespace", get, "/api/v1/pods?fieldSelector=metadata.namespace%3Dmine",
			""),
		as("watch pods of others", get, theirs+"/pods?watch=1", ""),
		as("watch them by the old path", get, "/api/v1/watch/namespaces/theirs/pods", ""),
		as("create a pod for others", post, theirs+"/pods", podJSON("evil", "")),
		as("create it by a namespace in the body", post, theirs+"/pods",
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"evil","namespace":"mine"},"spec":{"containers":[{"name":"c","image":"x"}]}}`),
		as("read a secret of others", get, theirs+"/secrets/used", ""),
		as("list all secrets", get, "/api/v1/secrets", ""),
		as("list secrets of the system", get, "/api/v1/namespaces/kube-system/secrets", ""),
		as("make a bootstrap token", post, "/api/v1/namespaces/kube-system/secrets",
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"bootstrap-token-abcdef"},"type":"bootstrap.kubernetes.io/token"}`),
		as("read the node", get, "/api/v1/nodes/node-1", ""),
		as("delete the node", del, "/api/v1/nodes/node-1", ""),
		as("taint the node", patch, "/api/v1/nodes/node-1", `{"spec":{"taints":[{"key":"x","effect":"NoExecute"}]}}`),
		as("reach the kubelet", get, "/api/v1/nodes/node-1/proxy/pods", ""),
		as("run by the kubelet", post, "/api/v1/nodes/node-1/proxy/exec/theirs/p/main?command=id", ""),
		as("read a log of others", get, theirs+"/pods/p/log", ""),
		as("change a label of another namespace", patch, "/api/v1/namespaces/theirs",
			`{"metadata":{"labels":{"x":"y"}}}`),
		as("take Pod Security off her own namespace", patch, "/api/v1/namespaces/mine",
			`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"privileged"}}}`),
		as("make a namespace", post, "/api/v1/namespaces",
			`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"hers"}}`),
		as("delete a namespace", del, "/api/v1/namespaces/theirs", ""),
		as("bind a pod herself", post, mine+"/pods/p/binding",
			`{"apiVersion":"v1","kind":"Binding","metadata":{"name":"p"},"target":{"kind":"Node","name":"node-2"}}`),
		as("fake a pod's status", patch, mine+"/pods/p/status", `{"status":{"phase":"Failed"}}`),
		as("evict a pod of others", post, theirs+"/pods/p/eviction",
			`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}}`),
		as("delete all pods of others", del, theirs+"/pods", ""),
		as("put a debug container into her pod without the right", patch, mine+"/pods/p/ephemeralcontainers",
			`{"spec":{"ephemeralContainers":[{"name":"d","image":"x"}]}}`),
		as("take the quota away", del, mine+"/resourcequotas", ""),
		as("give herself a role", post, rbacAPI+"/namespaces/mine/rolebindings",
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"x"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"admin"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"eve"}]}`),
		as("a token of another account", post, theirs+"/serviceaccounts/default/token",
			`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`),
		as("a webhook that sees everything", post, policies+"/mutatingwebhookconfigurations",
			`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","metadata":{"name":"x"}}`),
		as("take the policies away", del, policies+"/validatingadmissionpolicies", ""),
		as("a kind of her own", post, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{}`),
		as("ask what others may", post, "/apis/authorization.k8s.io/v1/subjectaccessreviews",
			`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"adam"}}`),
		as("try tokens", post, "/apis/authentication.k8s.io/v1/tokenreviews",
			`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"x"}}`),
		as("approve a certificate", put, certificates+"/x/approval", `{}`),
		as("a class above all others", post, "/apis/scheduling.k8s.io/v1/priorityclasses",
			`{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"x"},"value":1000000000}`),
		as("a class of runtimes", post, "/apis/node.k8s.io/v1/runtimeclasses",
			`{"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","metadata":{"name":"x"},"handler":"x"}`),
		as("the server's metrics", get, "/metrics", ""),
		as("the server's memory", get, "/debug/pprof/heap", ""),
		as("the server's logs", get, "/logs/", ""),
		as("records of debugging of others", get, "/apis/debug.wherry.dev/v1/namespaces/theirs/debugruns", ""),
		as("wipe the records of her own", del, "/apis/debug.wherry.dev/v1/namespaces/mine/debugruns", "", 403, 405),
		as("out of a proxied path", get, mine+"/pods/p/proxy/../../../../theirs/secrets/used", "", 403, 404, 301, 307,
			400, 503),
		as("out of it, encoded", get, mine+"/pods/p/proxy/..%2f..%2f..%2ftheirs/secrets/used", "", 403, 404, 400, 503,
			500),
		as("out of her namespace by dots", get, mine+"/../theirs/pods", "", 403, 404, 301, 307),
		as("out of it by an encoded slash", get, "/api/v1/namespaces/mine%2f..%2ftheirs/pods", "", 403, 404),
	}
	for _, name := range []string{"exec", "attach", "portforward"} {
		q := "?command=id&stdout=1&ports=80"
		rows = append(rows,
			attempt{who: "eve", what: name + " into a pod of others, SPDY", verb: post,
				path: theirs + "/pods/p/" + name + q, header: spdy()},
			attempt{who: "eve", what: name + " into a pod of others, WebSocket", verb: get,
				path: theirs + "/pods/p/" + name + q, header: upgrade()},
			attempt{who: "dave", what: name + " with the right to get alone", verb: get,
				path: mine + "/pods/p/" + name + q, header: upgrade()},
		)
	}
	debug := "/pods/p/exec?stdout=1&ephemeralContainerName=d&ephemeralContainerImage=x"
	image := "/pods/p/exec?stdout=1&image=x&command=id"
	rows = append(rows,
		attempt{who: "eve", what: "exec++ without the right to ephemeral containers", verb: get, path: mine + debug,
			header: upgrade()},
		attempt{who: "eve", what: "image exec without the right to it", verb: get, path: mine + image,
			header: upgrade()},
		attempt{who: "dave", what: "exec++ as one who looks", verb: post, path: mine + debug, header: spdy()},
		attempt{who: "eve", what: "image exec into a pod of others", verb: post, path: theirs + image, header: spdy()},
		attempt{who: "eve", what: "stop a debug container of others", verb: del, path: theirs + "/pods/p/debug/d"},
		attempt{who: "dave", what: "the proxy of a pod", verb: get, path: mine + "/pods/p/proxy/"},
	)
	for what, header := range map[string]map[string]string{
		"become the administrator":   {"Impersonate-User": "wherry-admin"},
		"become one of the masters":  {"Impersonate-User": "eve", "Impersonate-Group": "system:masters"},
		"become a controller":        {"Impersonate-User": "system:serviceaccount:kube-system:default"},
		"become somebody by uid":     {"Impersonate-User": "eve", "Impersonate-Uid": "1"},
		"become somebody with extra": {"Impersonate-User": "eve", "Impersonate-Extra-Scopes": "all"},
		"become a node":              {"Impersonate-User": "system:node:node-1", "Impersonate-Group": "system:nodes"},
	} {
		rows = append(rows, attempt{who: "eve", what: what, verb: get, path: mine + "/pods", header: header})
	}
	return rows
}

// namespaceAdmin: adam is admin of namespace mine, and wants more.
func (c *castle) namespaceAdmin() []attempt {
	binding := func(role, kind string) string {
		return `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"more"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"` + kind +
			`","name":"` + role +
			`"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"adam"}]}`
	}
	role := func(kind, rules string) string {
		return `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"` + kind +
			`","metadata":{"name":"more"},"rules":[` + rules + `]}`
	}
	all := `{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}`
	roles := rbacAPI + "/namespaces/mine/roles"
	rows := []attempt{
		{what: "bind cluster-admin", verb: post, path: rbacAPI + "/namespaces/mine/rolebindings",
			body: binding("cluster-admin", "ClusterRole")},
		{what: "bind a stronger role of the namespace", verb: post, path: rbacAPI + "/namespaces/mine/rolebindings",
			body: binding("powerful", "Role")},
		{what: "bind it by an apply", verb: patch, path: rbacAPI + "/namespaces/mine/rolebindings/more?fieldManager=x",
			body:   binding("powerful", "Role"),
			header: map[string]string{"Content-Type": "application/apply-patch+yaml"}},
		{what: "bind in the whole cluster", verb: post, path: rbacAPI + "/clusterrolebindings",
			body: binding("admin", "ClusterRole")},
		{what: "a role of all rights", verb: post, path: roles, body: role("Role", all)},
		{what: "a role of all rights by an apply", verb: patch, path: roles + "/more?fieldManager=x",
			body: role("Role", all), header: map[string]string{"Content-Type": "application/apply-patch+yaml"}},
		{what: "a role with one right more", verb: post, path: roles,
			body: role("Role", `{"apiGroups":[""],"resources":["pods/ephemeralcontainers"],"verbs":["patch"]}`)},
		{what: "the right to escalate", verb: post, path: roles,
			body: role("Role",
				`{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["escalate","bind"]}`)},
		{what: "a stronger role by a patch", verb: patch, path: roles + "/looker", body: `{"rules":[` + all + `]}`},
		{what: "a role of the cluster", verb: post, path: rbacAPI + "/clusterroles",
			body: role("ClusterRole", `{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}`)},
		{what: "be added to a default role", verb: patch, path: rbacAPI + "/clusterroles/view",
			body: `{"metadata":{"labels":{"rbac.authorization.k8s.io/aggregate-to-admin":"true"}}}`},
		{what: "roles of others", verb: get, path: rbacAPI + "/namespaces/theirs/roles"},
	}
	for i := range rows {
		rows[i].who = "adam"
	}
	return rows
}

// anonymous: nobody, and those who pretend to be somebody.
func (c *castle) anonymous() []attempt {
	other, err := pki.LoadOrCreate(c.t.TempDir(), "another-ca")
	if err != nil {
		c.t.Fatal(err)
	}
	c.enlist("nobody", nil, "")
	c.enlist("guesser", nil, "0123456789abcdef")
	c.enlist("forger", c.certificate(other, "wherry-admin", "system:masters"), "")
	c.enlist("namesake", c.certificate(c.srv.CA(), "system:masters"), "")
	rows := []attempt{}
	for _, path := range []string{"/api", "/apis", "/api/v1/pods", "/api/v1/nodes", theirs + "/secrets/used",
		"/openapi/v2", "/metrics", "/debug/pprof/", "/version", "/configz", "/api/v1/nodes/node-1/proxy/",
		theirs + "/pods/p/log", "/openid/v1/jwks"} {
		rows = append(rows, attempt{who: "nobody", what: "GET " + path, verb: get, path: path, codes: []int{401, 403}})
	}
	unauthorized := []int{http.StatusUnauthorized}
	socket := upgrade()
	socket["Sec-WebSocket-Protocol"] = "base64url.bearer.authorization.k8s.io.Z3Vlc3M, v5.channel.k8s.io"
	return append(rows,
		attempt{who: "nobody", what: "exec", verb: get, path: theirs + "/pods/p/exec?command=id&stdout=1",
			header: upgrade(), codes: []int{401, 403}},
		attempt{who: "nobody", what: "exec with a guessed token in the subprotocol", verb: get,
			path: theirs + "/pods/p/exec?command=id&stdout=1", header: socket, codes: unauthorized},
		attempt{who: "nobody", what: "create a pod", verb: post, path: theirs + "/pods", body: podJSON("evil", ""),
			codes: []int{401, 403}},
		attempt{who: "nobody", what: "headers of a proxy that is not there", verb: get, path: "/api/v1/secrets",
			codes: []int{401, 403}, header: map[string]string{"X-Remote-User": "wherry-admin",
				"X-Remote-Group": "system:masters"}},
		attempt{who: "nobody", what: "become the administrator", verb: get, path: "/api/v1/secrets",
			codes: []int{401, 403}, header: map[string]string{"Impersonate-User": "wherry-admin",
				"Impersonate-Group": "system:masters"}},
		attempt{who: "nobody", what: "a password", verb: get, path: "/api/v1/secrets", codes: []int{401, 403},
			header: map[string]string{"Authorization": "Basic YWRtaW46YWRtaW4="}},
		attempt{who: "nobody", what: "a token in the query", verb: get, path: "/api/v1/secrets?access_token=eve-token",
			codes: []int{401, 403}},
		attempt{who: "nobody", what: "an empty token", verb: get, path: "/api/v1/secrets", codes: []int{401, 403},
			header: map[string]string{"Authorization": "Bearer "}},
		attempt{who: "nobody", what: "a token signed by nobody", verb: get, path: "/api/v1/secrets",
			codes:  unauthorized,
			header: map[string]string{"Authorization": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6a3ViZS1zeXN0ZW06ZGVmYXVsdCJ9."}},
		attempt{who: "guesser", what: "a guessed token", verb: get, path: "/api/v1/secrets", codes: unauthorized},
		attempt{who: "forger", what: "a certificate of another authority", verb: get, path: "/api/v1/secrets",
			codes: unauthorized},
		attempt{who: "namesake", what: "a name that is the group's", verb: get, path: "/api/v1/secrets"},
	)
}

// stolenNode: the certificate of node-1, on which pod mine/p runs.
func (c *castle) stolenNode() []attempt {
	c.enlist("node-1", c.certificate(c.srv.CA(), "system:node:node-1", "system:nodes"), "")
	c.enlist("no node", c.certificate(c.srv.CA(), "somebody", "system:nodes"), "")
	mirror := func(node string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"m","annotations":{"kubernetes.io/config.mirror":"x"}},"spec":{"nodeName":"` + node + `","containers":[{"name":"c","image":"x"}]}}`
	}
	token := `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`
	rows := []attempt{
		{what: "a secret that no pod of it uses", verb: get, path: mine + "/secrets/unused"},
		{what: "a secret of another node's pod", verb: get, path: theirs + "/secrets/used"},
		{what: "list the secrets", verb: get, path: mine + "/secrets"},
		{what: "list all secrets", verb: get, path: "/api/v1/secrets"},
		{what: "write a secret that its pod uses", verb: patch, path: mine + "/secrets/used",
			body: `{"stringData":{"k":"v"}}`},
		{what: "a configmap that no pod of it uses", verb: get, path: theirs + "/configmaps/x"},
		{what: "delete another node's pod", verb: del, path: theirs + "/pods/p"},
		{what: "another node's pod's status", verb: patch, path: theirs + "/pods/p/status",
			body: `{"status":{"phase":"Failed"}}`},
		{what: "evict another node's pod", verb: post, path: theirs + "/pods/p/eviction",
			body: `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}}`},
		{what: "change another node", verb: patch, path: "/api/v1/nodes/node-2",
			body: `{"metadata":{"labels":{"x":"y"}}}`},
		{what: "another node's status", verb: patch, path: "/api/v1/nodes/node-2/status",
			body: `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`},
		{what: "delete itself", verb: del, path: "/api/v1/nodes/node-1"},
		{what: "a label that is not a node's to set", verb: patch, path: "/api/v1/nodes/node-1",
			body: `{"metadata":{"labels":{"node-restriction.kubernetes.io/x":"y"}}}`},
		{what: "a taint of its own", verb: patch, path: "/api/v1/nodes/node-1",
			body: `{"spec":{"taints":[{"key":"x","effect":"NoExecute"}]}}`},
		{what: "the network of another node's pods", verb: patch, path: "/api/v1/nodes/node-1",
			body: `{"spec":{"podCIDR":"10.9.2.0/24","podCIDRs":["10.9.2.0/24"]}}`},
		{what: "make another node", verb: post, path: "/api/v1/nodes",
			body: `{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-3"}}`},
		{what: "a pod that is no mirror", verb: post, path: mine + "/pods",
			body: podJSON("evil", `,"nodeName":"node-1"`)},
		{what: "a mirror on another node", verb: post, path: mine + "/pods", body: mirror("node-2")},
		{what: "a token that is bound to nothing", verb: post, path: mine + "/serviceaccounts/default/token",
			body: token},
		{what: "a token of an account it does not run", verb: post, path: theirs + "/serviceaccounts/default/token",
			body: token},
		{what: "a debug container in its own pod", verb: patch, path: mine + "/pods/p/ephemeralcontainers",
			body: `{"spec":{"ephemeralContainers":[{"name":"d","image":"x"}]}}`},
		{what: "another node's lease", verb: put,
			path: "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/node-2",
			body: `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"node-2"}}`},
		{what: "a role", verb: post, path: rbacAPI + "/clusterrolebindings", body: `{}`},
		{what: "another kubelet", verb: get, path: "/api/v1/nodes/node-2/proxy/pods"},
		{what: "become the administrator", verb: get, path: mine + "/pods",
			header: map[string]string{"Impersonate-User": "wherry-admin"}},
		{what: "a namespace", verb: del, path: "/api/v1/namespaces/theirs"},
	}
	for i := range rows {
		rows[i].who = "node-1"
	}
	return append(rows,
		attempt{who: "node-1", what: "exec into a pod", verb: get, path: mine + "/pods/p/exec?command=id&stdout=1",
			header: upgrade()},
		attempt{who: "node-1", what: "another node's pod whole", verb: get, path: theirs + "/pods/p"},
		attempt{who: "no node", what: "a node's group without a node's name", verb: get, path: mine + "/secrets/used"},
	)
}

// podToken: what a program in pod mine/p finds in its file.
func (c *castle) podToken() []attempt {
	t, ctx := c.t, c.t.Context()
	p, err := c.admin.CoreV1().Pods("mine").Get(ctx, "p", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.enlist("pod", nil, c.token("mine", "default", p))
	c.enlist("other audience", nil, c.token("mine", "default", p, "https://elsewhere.example"))

	gone := createPod(t, c.admin, "mine", pod("gone"))
	c.enlist("dead pod", nil, c.token("mine", "default", gone))
	zero := int64(0)
	if err := c.admin.CoreV1().Pods("mine").Delete(ctx, "gone",
		metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.admin.CoreV1().ServiceAccounts("mine").Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "brief"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.enlist("dead account", nil, c.token("mine", "brief", nil))
	if err := c.admin.CoreV1().ServiceAccounts("mine").Delete(ctx, "brief", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	rows := []attempt{
		{what: "its neighbours", verb: get, path: mine + "/pods"},
		{what: "itself", verb: get, path: mine + "/pods/p"},
		{what: "the secret it has mounted", verb: get, path: mine + "/secrets/used"},
		{what: "all secrets", verb: get, path: "/api/v1/secrets"},
		{what: "nodes", verb: get, path: "/api/v1/nodes"},
		{what: "a pod with the node's files", verb: post, path: mine + "/pods",
			body: podJSON("evil", `,"volumes":[{"name":"v","hostPath":{"path":"/"}}]`)},
		{what: "another token", verb: post, path: mine + "/serviceaccounts/default/token",
			body: `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`},
		{what: "its log", verb: get, path: mine + "/pods/p/log"},
		{what: "a role", verb: post, path: rbacAPI + "/namespaces/mine/rolebindings", body: `{}`},
		{what: "become its namespace's administrator", verb: get, path: mine + "/pods",
			header: map[string]string{"Impersonate-User": "adam"}},
	}
	for i := range rows {
		rows[i].who = "pod"
	}
	unauthorized := []int{http.StatusUnauthorized}
	return append(rows,
		attempt{who: "pod", what: "exec into itself", verb: get, path: mine + "/pods/p/exec?command=id&stdout=1",
			header: upgrade()},
		attempt{who: "other audience", what: "a token for somebody else", verb: get, path: "/api", codes: unauthorized},
		attempt{who: "dead pod", what: "a token whose pod is gone", verb: get, path: "/api", codes: unauthorized},
		attempt{who: "dead account", what: "a token whose account is gone", verb: get, path: "/api",
			codes: unauthorized},
	)
}
