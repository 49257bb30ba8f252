// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/cluster/wire"
)

// fail answers as an API does.
func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusFailure, Reason: reason, Code: int32(code), Message: message})
}

// DA-09: the sessions that are found are listed, whichever pod's agent does not tell; of which pods they are not known is
// said.
func TestSessionsOfSome(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch pod := path.Base(path.Dir(req.URL.Path)); {
		case path.Base(req.URL.Path) != wire.Sessions: // what the server is, and has
		case pod == "here":
			_ = json.NewEncoder(w).Encode(wire.RunningList{Items: []wire.Running{{ID: "0123456789ab"}}})
		case pod == "hidden":
			fail(w, http.StatusForbidden, metav1.StatusReasonForbidden, "you may not")
		case pod == "no-agent":
			fail(w, http.StatusServiceUnavailable, wire.ReasonNoAgent, "there is none")
		default:
			fail(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "it is broken")
		}
	}))
	defer srv.Close()
	config := &rest.Config{Host: srv.URL}
	c := &reach.Client{Config: config, Interface: kubernetes.NewForConfigOrDie(config)}
	for name, want := range map[string]struct {
		found int
		err   string
	}{
		"here":                       {1, ""},
		"hidden":                     {0, "you may not"},
		"no-agent here":              {1, ""},
		"hidden here":                {1, ""},
		"broken here hidden":         {1, "those of shop/broken: it is broken"},
		"a b here c d e":             {1, "those of shop/a, shop/b, shop/c, 2 more: "},
		"not-yet-on-a-node":          {0, ""},
		"here not-yet-on-a-node b":   {1, "those of shop/b: "},
		"not-yet-on-a-node b hidden": {0, "those of shop/b: "},
	} {
		var pods []corev1.Pod
		for pod := range strings.FieldsSeq(name) {
			p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: pod}, Spec: corev1.PodSpec{NodeName: "n"}}
			if strings.HasPrefix(pod, "not-yet") {
				p.Spec.NodeName = ""
			}
			pods = append(pods, p)
		}
		found, err := sessionsOf(t.Context(), c, pods)
		if len(found) != want.found || (err == nil) != (want.err == "") || !strings.Contains(fmt.Sprint(err), want.err) {
			t.Errorf("%s: %d, %v", name, len(found), err)
		}
	}
}
