// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/wherryproject/wherry/internal/api/schemes"
)

// RS-01: a user has no more sessions than allowed, and a namespace no more than allowed, by whomever; others, administrators and requests that
// are no sessions go on. A session that has ended counts no longer.
func TestSessionLimits(t *testing.T) {
	types, err := schemes.New()
	if err != nil {
		t.Fatal(err)
	}
	lasts := func(_ *http.Request, info *request.RequestInfo) bool { return info.Subresource != "" }
	l := &sessionLimits{perUser: 2, perNamespace: 4, lasts: lasts, codecs: types.Codecs, users: tally{}, namespaces: tally{}}
	release, begun, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	ask := func(next http.HandlerFunc, who user.DefaultInfo, namespace, subresource string) *httptest.ResponseRecorder {
		info := &request.RequestInfo{IsResourceRequest: true, Verb: "create", APIVersion: "v1", Resource: "pods", Subresource: subresource, Namespace: namespace}
		req := httptest.NewRequest(http.MethodPost, "/", nil)
		req = req.WithContext(request.WithUser(request.WithRequestInfo(req.Context(), info), &who))
		w := httptest.NewRecorder()
		l.hold(next).ServeHTTP(w, req)
		return w
	}
	open := func(name, namespace string) {
		go func() {
			ask(func(http.ResponseWriter, *http.Request) { begun <- struct{}{}; <-release }, user.DefaultInfo{Name: name}, namespace, "exec")
			ended <- struct{}{}
		}()
		<-begun
	}
	try := func(name, namespace, subresource string, groups ...string) *httptest.ResponseRecorder {
		return ask(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }, user.DefaultInfo{Name: name, Groups: groups}, namespace, subresource)
	}
	refused := func(w *httptest.ResponseRecorder, words string) {
		t.Helper()
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), words) {
			t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
		}
	}
	allowed := func(w *httptest.ResponseRecorder) {
		t.Helper()
		if w.Code != http.StatusOK {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	open("jane", "a")
	open("jane", "a")
	refused(try("jane", "a", "attach"), `user \"jane\" has 2 open sessions`)
	refused(try("jane", "b", "portforward"), `user \"jane\" has 2 open sessions`)
	allowed(try("jane", "a", ""))
	allowed(try("joe", "a", "exec"))
	open("system:serviceaccount:a:one", "a")
	open("system:serviceaccount:a:two", "a")
	refused(try("joe", "a", "log"), `namespace \"a\" has 4 open sessions`)
	allowed(try("joe", "b", "log"))
	allowed(try("root", "a", "exec", user.SystemPrivilegedGroup))
	close(release)
	for range 4 {
		<-ended
	}
	allowed(try("jane", "a", "exec"))
	if len(l.users) > 0 || len(l.namespaces) > 0 {
		t.Errorf("still counted: %v %v", l.users, l.namespaces)
	}
}
