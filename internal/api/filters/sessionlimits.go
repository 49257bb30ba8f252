// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// sessionLimits bounds how many sessions there are at the same time: whatever lasts as long as its client wants and is
// no watch, which is exec, attach, port-forward, debugging, image exec, logs and proxies. Each holds up to four
// descriptors, and priority and fairness does not count them. The limit of a namespace is there because whoever may
// edit one can make any number of service accounts in it.
type sessionLimits struct {
	perUser, perNamespace int // 0: any number
	lasts                 request.LongRunningRequestCheck
	codecs                runtime.NegotiatedSerializer

	mu         sync.Mutex
	users      tally
	namespaces tally
}

// hold counts the sessions that next serves, and refuses those that are too many.
func (l *sessionLimits) hold(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		who, known := request.UserFrom(req.Context())
		if !ok || !known || !info.IsResourceRequest || info.Verb == "watch" || !l.lasts(req, info) || unlimited(who) {
			next.ServeHTTP(w, req)
			return
		}
		leave, err := l.enter(who.GetName(), info.Namespace)
		if err != nil {
			group := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
			responsewriters.ErrorNegotiated(apierrors.NewTooManyRequests(err.Error(), 1), l.codecs, group, w, req)
			return
		}
		defer leave()
		next.ServeHTTP(w, req)
	})
}

// enter counts a session, if there may be one more. A namespace of "" is none.
func (l *sessionLimits) enter(user, namespace string) (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.users.full(user, l.perUser):
		return nil,
			fmt.Errorf("user %q has %d open sessions (exec, attach, port-forward, debugging, logs, proxies), the maximum: close some, then try again",
				user, l.perUser)
	case namespace != "" && l.namespaces.full(namespace, l.perNamespace):
		return nil,
			fmt.Errorf("namespace %q has %d open sessions (exec, attach, port-forward, debugging, logs, proxies), the maximum: "+
				"try again when some of them have ended", namespace, l.perNamespace)
	}
	l.users.add(user)
	l.namespaces.add(namespace)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.users.remove(user)
		l.namespaces.remove(namespace)
	}, nil
}

// tally counts by name. Names that have nothing are not kept.
type tally map[string]int

func (t tally) full(name string, limit int) bool { return limit > 0 && t[name] >= limit }

func (t tally) add(name string) { t[name]++ }

func (t tally) remove(name string) {
	if t[name]--; t[name] <= 0 {
		delete(t, name)
	}
}

// holder is whose share of the server a user's requests take. Service accounts of a namespace have one share together:
// whoever may edit the namespace can make any number of them.
func holder(user string) string {
	const prefix = "system:serviceaccount:"
	if rest, ok := strings.CutPrefix(user, prefix); ok {
		namespace, _, _ := strings.Cut(rest, ":")
		return prefix + namespace
	}
	return user
}
