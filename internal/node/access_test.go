// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// judge is an API server's word: prometheus may read n1's metrics, and shows the token "good".
func judge(t *testing.T, asked *atomic.Int32, down *atomic.Bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if down.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		var out any
		var err error
		switch r.URL.Path {
		case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
			asked.Add(1)
			review := &authorizationv1.SubjectAccessReview{}
			err = json.NewDecoder(r.Body).Decode(review)
			a := review.Spec.ResourceAttributes
			review.Status.Allowed = err == nil && review.Spec.User == "prometheus" && a.Resource == "nodes" && a.Subresource == "metrics" && a.Verb == "get" && a.Name == "n1"
			out = review
		case "/apis/authentication.k8s.io/v1/tokenreviews":
			review := &authenticationv1.TokenReview{}
			err = json.NewDecoder(r.Body).Decode(review)
			if review.Spec.Token == "good" {
				review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "prometheus"}}
			}
			out = review
		}
		if out == nil || err != nil {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(out)
	}
}

// TestAccess proves that the API server's word decides, that it is asked once for a while, and that without it nobody gets in but
// administrators.
func TestAccess(t *testing.T) {
	var asked atomic.Int32
	var down atomic.Bool
	api := httptest.NewServer(judge(t, &asked, &down))
	defer api.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: api.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := newAccess(client)
	if err != nil {
		t.Fatal(err)
	}
	may := func(name, subresource string, groups ...string) (bool, error) {
		decision, _, err := a.authorize(t.Context(), authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: name, Groups: groups}, Verb: "get", APIVersion: "v1", Resource: "nodes", Name: "n1", Subresource: subresource, ResourceRequest: true,
		})
		return decision == authorizer.DecisionAllow, err
	}
	for _, tc := range []struct {
		name, subresource string
		groups            []string
		allowed           bool
		asked             int // in all
	}{
		{"admin", "proxy", []string{user.SystemPrivilegedGroup}, true, 0},
		{"prometheus", "metrics", nil, true, 1},
		{"prometheus", "metrics", nil, true, 1},
		{"prometheus", "proxy", nil, false, 2},
		{"prometheus", "proxy", nil, false, 2},
		{"jane", "metrics", nil, false, 3},
	} {
		allowed, err := may(tc.name, tc.subresource, tc.groups...)
		if err != nil || allowed != tc.allowed || int(asked.Load()) != tc.asked {
			t.Errorf("%s %s: %t, asked %d times, %v; want %t, %d", tc.name, tc.subresource, allowed, asked.Load(), err, tc.allowed, tc.asked)
		}
	}
	down.Store(true)
	if allowed, err := may("joe", "metrics"); allowed || err == nil {
		t.Errorf("%t %v", allowed, err)
	}
	down.Store(false)
	for token, want := range map[string]string{"good": "prometheus", "bad": ""} {
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		resp, ok, _ := a.tokens.AuthenticateRequest(r)
		if ok != (want != "") || ok && resp.User.GetName() != want {
			t.Errorf("token %s: %t %+v", token, ok, resp)
		}
	}
}
