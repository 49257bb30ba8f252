// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wherryproject/wherry/internal/why"
)

// oneBroken is an API that has a pod which ends with 3 and its log, for jane and the kubeconfig, and refuses everything else.
func oneBroken(t *testing.T) http.HandlerFunc {
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u"},
		Spec:       corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "main", Image: "i"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "main", RestartCount: 4,
			State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}}}}}}
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "GET" && r.URL.Path != "/apis/authentication.k8s.io/v1/selfsubjectreviews" {
			t.Errorf("why changes something: %s %s", r.Method, r.URL)
		}
		if r.Header.Get("Cookie") != "" || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
			t.Errorf("%s: asked with %v", r.URL, r.Header)
		}
		switch r.URL.Path {
		case "/api/v1/namespaces/shop/pods/web":
			writeJSON(w, http.StatusOK, pod)
		case "/api/v1/namespaces/shop/pods/web/log":
			writeText(w, http.StatusOK, "no database at db:5432")
		case "/api/v1/namespaces/shop/pods/none":
			writeStatus(w, http.StatusNotFound, "there is none")
		default:
			writeStatus(w, http.StatusForbidden, r.URL.Path+" is not for you")
		}
	}
}

// UI-02 DA-11: why a pod is not well is answered as wherry why does, from what the reader may look at, with what he may not; a pod that he
// may not see is refused in the server's words.
func TestWhy(t *testing.T) {
	for _, mode := range []SignIn{ByLink, ByToken} {
		t.Run(string(mode), func(t *testing.T) {
			k := newKit(t, mode, reviews(oneBroken(t)))
			if got := k.status(http.StatusUnauthorized, k.ask("GET", "/ui/why?namespace=shop&name=web", "")); !strings.Contains(got, "nobody is signed in") {
				t.Error(got)
			}
			k.signedIn()
			resp := k.ask("GET", "/ui/why?namespace=shop&name=web", "")
			if csp := resp.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "sandbox") {
				t.Errorf("the answer could be a page: %q", csp)
			}
			var got why.Answer
			if err := json.Unmarshal([]byte(k.text(http.StatusOK, resp)), &got); err != nil {
				t.Fatal(err)
			}
			if !got.Wrong || len(got.Findings) == 0 || !strings.Contains(got.Findings[0].What, "3") || len(got.Logs) != 1 ||
				got.Logs[0].Lines[0] != "no database at db:5432" {
				t.Errorf("%+v", got)
			}
			unseen := false
			for _, u := range got.Unseen {
				unseen = unseen || u.What == "events" && u.Right == "list events"
			}
			if !unseen {
				t.Errorf("what could not be seen: %+v", got.Unseen)
			}
			for query, want := range map[string]struct {
				code int
				says string
			}{
				"namespace=other&name=web":        {http.StatusForbidden, "/api/v1/namespaces/other/pods/web is not for you"},
				"namespace=shop&name=service/web": {http.StatusBadRequest, "use the name of a pod"},
				"namespace=shop&name=none":        {http.StatusNotFound, "there is no pod none in namespace shop"},
				"namespace=shop":                  {http.StatusBadRequest, "give the name of one"},
				"name=web":                        {http.StatusBadRequest, "name the namespace of web"},
			} {
				if got := k.status(want.code, k.ask("GET", "/ui/why?"+query, "")); !strings.Contains(got, want.says) {
					t.Errorf("%s: %q", query, got)
				}
			}
		})
	}
}
