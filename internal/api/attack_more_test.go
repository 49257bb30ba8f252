// SPDX-License-Identifier: Apache-2.0

package api_test

import "net/http"

const recordsAPI = "/apis/debug.wherry.dev/v1/namespaces/"

// debugger: deb may debug in namespace mine, up to what does not reach the node, and change nothing else.
func (c *castle) debugger() []attempt {
	session := "/pods/p/exec?stdout=1&ephemeralContainerName=d&ephemeralContainerImage=x"
	privileged := `{"spec":{"ephemeralContainers":[{"name":"d","image":"x","securityContext":{"privileged":true}}]}}`
	rows := []attempt{
		{what: "profile sysadmin, WebSocket", verb: get, path: mine + session + "&ephemeralContainerProfile=sysadmin",
			header: upgrade()},
		{what: "profile sysadmin, SPDY", verb: post, path: mine + session + "&ephemeralContainerProfile=sysadmin",
			header: spdy()},
		{what: "profile netadmin", verb: get, path: mine + session + "&ephemeralContainerProfile=netadmin",
			header: upgrade()},
		{what: "a privileged debug container, merged", verb: patch, path: mine + "/pods/p/ephemeralcontainers",
			body: privileged},
		{what: "a privileged debug container, strategically", verb: patch, path: mine + "/pods/p/ephemeralcontainers",
			body: privileged, header: map[string]string{"Content-Type": "application/strategic-merge-patch+json"}},
		{what: "a debug container that may do all", verb: patch, path: mine + "/pods/p/ephemeralcontainers",
			body: `{"spec":{"ephemeralContainers":[{"name":"d","image":"x","securityContext":{"capabilities":{"add":["SYS_ADMIN"]}}}]}}`},
		{what: "image exec as a profile's", verb: get, path: mine +
			"/pods/p/exec?stdout=1&image=x&command=id&profile=sysadmin", header: upgrade(),
			codes: []int{400, 403, 503}},
		{what: "a pod", verb: post, path: mine + "/pods", body: podJSON("evil", "")},
		{what: "another image", verb: patch, path: mine + "/pods/p", body: `{"metadata":{"labels":{"x":"y"}}}`},
		{what: "delete a pod", verb: del, path: mine + "/pods/p"},
		{what: "read a secret", verb: get, path: mine + "/secrets/used"},
		{what: "a token", verb: post, path: mine + "/serviceaccounts/default/token", body: tokenRequest},
		{what: "exec into a pod of others", verb: get, path: theirs + "/pods/p/exec?command=id&stdout=1",
			header: upgrade()},
		{what: "exec++ into a pod of others", verb: post, path: theirs + session, header: spdy()},
		{what: "image exec into a pod of others", verb: get, path: theirs + "/pods/p/exec?stdout=1&image=x&command=id",
			header: upgrade()},
		{what: "log of others", verb: get, path: theirs + "/pods/p/log"},
	}
	for i := range rows {
		rows[i].who = "deb"
	}
	return rows
}

const tokenRequest = `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`

// anybody: what none of the users of namespace mine may do, whatever role they have there.
func (c *castle) anybody() []attempt {
	put2 := func(name string) string {
		return `{"apiVersion":"debug.wherry.dev/v1","kind":"DebugRun","metadata":{"name":"` + name +
			`","namespace":"mine"},"spec":{"user":"somebody"}}`
	}
	var rows []attempt
	for _, who := range []string{"eve", "deb", "adam"} {
		for _, a := range []attempt{
			{what: "a token of others", verb: post, path: theirs + "/serviceaccounts/default/token",
				body: tokenRequest},
			{what: "a token of the system", verb: post,
				path: "/api/v1/namespaces/kube-system/serviceaccounts/default/token", body: tokenRequest},
			{what: "a token with an audience", verb: post, path: theirs + "/serviceaccounts/default/token",
				body: `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"audiences":["https://kubernetes.default.svc"],"expirationSeconds":864000}}`},
			{what: "forge a record of debugging", verb: post, path: recordsAPI + "mine/debugruns", body: put2("r"),
				codes: []int{403, 405}},
			{what: "change a record", verb: put, path: recordsAPI + "mine/debugruns/r", body: put2("r"),
				codes: []int{403, 405}},
			{what: "patch a record", verb: patch, path: recordsAPI + "mine/debugruns/r", body: `{"spec":{"user":"x"}}`,
				codes: []int{403, 405}},
			{what: "patch a record's end", verb: patch, path: recordsAPI + "mine/debugruns/r/status",
				body: `{"status":{"exitCode":0}}`},
			{what: "delete a record", verb: del, path: recordsAPI + "mine/debugruns/r"},
			{what: "delete all records", verb: del, path: recordsAPI + "mine/debugruns"},
			{what: "delete the records of all", verb: del, path: "/apis/debug.wherry.dev/v1/debugruns",
				codes: []int{403, 405}},
			{what: "a group alone", verb: get, path: theirs + "/secrets",
				header: map[string]string{"Impersonate-Group": "system:masters"}, codes: []int{400, 403, 500}},
			{what: "a uid alone", verb: get, path: theirs + "/secrets",
				header: map[string]string{"Impersonate-Uid": "0"}, codes: []int{400, 403, 500}},
			{what: "an extra alone", verb: get, path: theirs + "/secrets",
				header: map[string]string{"Impersonate-Extra-Scopes": "all"}, codes: []int{400, 403, 500}},
			{what: "an account of others", verb: get, path: mine + "/pods",
				header: map[string]string{"Impersonate-User": "system:serviceaccount:theirs:default"}},
			{what: "a controller", verb: get, path: mine + "/pods",
				header: map[string]string{"Impersonate-User": "system:kube-scheduler"}},
			{what: "the headers of a proxy", verb: get, path: theirs + "/secrets",
				header: map[string]string{"X-Remote-User": "wherry-admin", "X-Remote-Group": "system:masters"}},
			{what: "a request for a certificate", verb: post, path: certificates,
				body: `{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":"x"},"spec":{"request":"eA==","signerName":"kubernetes.io/kube-apiserver-client","usages":["client auth"]}}`},
			{what: "sign one", verb: patch, path: certificates + "/x/status",
				body: `{"status":{"certificate":"eA=="}}`},
			{what: "a binding of a role that is not there", verb: post, path: rbacAPI + "/namespaces/mine/rolebindings",
				body: bindingOf("nothing", "ClusterRole", who), codes: []int{403, 404}},
			{what: "a binding of debug", verb: post, path: rbacAPI + "/namespaces/mine/rolebindings",
				body: bindingOf("debug", "ClusterRole", who)},
			{what: "a binding of debug-privileged", verb: post, path: rbacAPI + "/namespaces/mine/rolebindings",
				body: bindingOf("debug-privileged", "ClusterRole", who)},
			{what: "a binding for all namespaces", verb: post, path: rbacAPI + "/clusterrolebindings",
				body: bindingOf("view", "ClusterRole", who)},
		} {
			a.who = who
			rows = append(rows, a)
		}
	}
	return rows
}

func bindingOf(role, kind, who string) string {
	return `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"more"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"` + kind +
		`","name":"` + role + `"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"` + who +
		`"}]}`
}

// levels: adam, who is admin of namespace mine, and eve try to change what its pods may be.
func (c *castle) levels() []attempt {
	labels := `"labels":{"pod-security.kubernetes.io/enforce":"privileged"}`
	whole := `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"mine",` + labels + `},"spec":{"finalizers":[]}}`
	var rows []attempt
	for _, who := range []string{"adam", "eve", "deb"} {
		for what, a := range map[string]attempt{
			"by a patch": {verb: patch, path: mine, body: `{"metadata":{` + labels + `}}`},
			"by a strategic patch": {verb: patch, path: mine, body: `{"metadata":{` + labels + `}}`,
				header: map[string]string{"Content-Type": "application/strategic-merge-patch+json"}},
			"by a JSON patch": {verb: patch, path: mine,
				body:   `[{"op":"add","path":"/metadata/labels","value":{}}]`,
				header: map[string]string{"Content-Type": "application/json-patch+json"}},
			"by an apply": {verb: patch, path: mine + "?fieldManager=x&force=true", body: whole,
				header: map[string]string{"Content-Type": "application/apply-patch+yaml"}},
			"by an update":        {verb: put, path: mine, body: whole},
			"by its status":       {verb: patch, path: mine + "/status", body: `{"metadata":{` + labels + `}}`},
			"by the whole status": {verb: put, path: mine + "/status", body: whole},
			"by its finalizers":   {verb: put, path: mine + "/finalize", body: whole},
			"by the path of its own": {verb: patch, path: "/api/v1/namespaces/mine/",
				body: `{"metadata":{` + labels + `}}`},
			"by deleting it": {verb: http.MethodDelete, path: mine},
		} {
			a.who, a.what = who, "the level "+what
			rows = append(rows, a)
		}
	}
	return rows
}
