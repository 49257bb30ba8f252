// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/wherryproject/wherry/internal/why"
)

// elsewhere is an API server of another make, which answers what it is given by path, and refuses the rest. It returns a
// kubeconfig, and what was asked for.
func elsewhere(t *testing.T, answers map[string]string) (config string, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var paths []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		paths = append(paths, r.Method+" "+r.URL.Path)
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if text, ok := answers[r.URL.Path]; ok {
			fmt.Fprint(w, text)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no right to %s"}`, r.URL.Path)
	}))
	t.Cleanup(s.Close)
	config = filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"kind":"Config","apiVersion":"v1","current-context":"c","clusters":[{"name":"c","cluster":{"server":%q}}],
"contexts":[{"name":"c","context":{"cluster":"c","user":"","namespace":"shop"}}]}`, s.URL)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return config, func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(paths) }
}

const crashing = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"shop","uid":"u1","creationTimestamp":"2026-11-20T12:00:00Z"},
"spec":{"nodeName":"node-1","restartPolicy":"Always","volumes":[{"name":"v","secret":{"secretName":"keys"}}],
"containers":[{"name":"app","image":"a:1"}]},"status":{"phase":"Running","containerStatuses":[{"name":"app","restartCount":3,"state":{
"waiting":{"reason":"CrashLoopBackOff"}},"lastState":{"terminated":{"exitCode":1,"reason":"Error"}}}]}}`

// DA-11: on a cluster of another make, to somebody who may only get a pod, the answer says what it can, and names the rights that
// are missing; what others wrote does not reach the terminal as it is; nothing is changed.
func TestWhyElsewhere(t *testing.T) {
	alone(t)
	const pod = "/api/v1/namespaces/shop/pods/web"
	config, asked := elsewhere(t, map[string]string{pod: crashing})
	code, out, errs := call(t, "", "why", "--kubeconfig", config, "pod/web")
	for _, want := range []string{"1. container app: its program failed with exit code 1\n", "events: you have no right to list events\n",
		"log of app: you have no right to get pods/log\n", "Secret keys: you have no right to get secrets\n",
		"node node-1: you have no right to get nodes\n"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, %s\n%s\nwant %s", code, errs, out, want)
		}
	}
	if code, _, _ := call(t, "", "why", "--kubeconfig", config, "web", "--exit-code", "-o", "yaml"); code != 3 {
		t.Errorf("with --exit-code: %d", code)
	}
	for _, path := range asked() {
		if !strings.HasPrefix(path, "GET ") {
			t.Errorf("it asks %s", path)
		}
	}
	if code, _, errs := call(t, "", "why", "--kubeconfig", config, "pod/none"); code != 1 || !strings.Contains(errs, "no right to") {
		t.Errorf("a pod that he may not get: %d, %s", code, errs)
	}

	config, _ = elsewhere(t, map[string]string{pod: crashing, pod + "/log": "\x1b[2Jcleared\u202e\nthe end\x07\n", "/version": `{"gitVersion":"v1.30.0"}`,
		"/api/v1/namespaces/shop/secrets/keys": `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"keys"},"data":{"a":"aHVzaA=="}}`})
	code, out, errs = call(t, "", "why", "--kubeconfig", config, "web")
	if code != 0 || !strings.Contains(out, "its last words: the end\n") || strings.ContainsAny(out, "\x1b\x07\u202e") {
		t.Errorf("exit code %d, %s\n%q", code, errs, out)
	}
	code, out, errs = call(t, "", "why", "--kubeconfig", config, "web", "-o", "json")
	var a why.Answer
	if err := json.Unmarshal([]byte(out), &a); code != 0 || err != nil || !a.Wrong || len(a.Logs) != 1 || !a.Logs[0].Previous || strings.Contains(out, "aHVzaA") {
		t.Errorf("%d, %v, %s\n%s", code, err, errs, out)
	}
}

// DA-11: a name that no pod has may be that of what makes pods; one that nothing has is told as such.
func TestWhyNoSuchPod(t *testing.T) {
	alone(t)
	const notFound = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	base := "/apis/apps/v1/namespaces/shop/"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case base + "statefulsets/db":
			fmt.Fprint(w, `{"kind":"StatefulSet","apiVersion":"apps/v1","metadata":{"name":"db","namespace":"shop","uid":"s1"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}}}}`)
		case "/api/v1/namespaces/shop/pods":
			fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","items":[]}`)
		case "/api/v1/namespaces/shop/events":
			fmt.Fprint(w, `{"kind":"EventList","apiVersion":"v1","items":[{"type":"Warning","reason":"FailedCreate","involvedObject":{"kind":"StatefulSet","name":"db"},`+
				`"message":"create Pod db-0 in StatefulSet db failed error: pods \"db-0\" is forbidden: violates PodSecurity \"restricted:latest\": runAsNonRoot != true"}]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, notFound)
		}
	}))
	t.Cleanup(s.Close)
	config := filepath.Join(t.TempDir(), "config")
	kubeconfigOf(t, config, strings.TrimPrefix(s.URL, "http://"))
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(string(text), "https://", "http://")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"db", "sts/db"} {
		code, out, errs := call(t, "", "why", "--kubeconfig", config, "-n", "shop", name)
		if code != 0 || !strings.Contains(out, "StatefulSet shop/db: 2 pods wanted, none there\n\n1. StatefulSet db: its pods are refused by the Pod Security level") {
			t.Errorf("%s: %d, %s\n%s", name, code, errs, out)
		}
	}
	code, out, errs := call(t, "", "why", "--kubeconfig", config, "-n", "shop", "none")
	if code != 1 || out != "" || !strings.Contains(errs, "there is no pod none in namespace shop, nor a Deployment") {
		t.Errorf("%d, %s, %s", code, out, errs)
	}
}
