// SPDX-License-Identifier: Apache-2.0

package trail

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Filter says which events are wanted. Its zero value takes all.
type Filter struct {
	Resource, Name string // plural, and the object's name
	Namespace      string
	Users          []string // names; an impersonated one counts too
	Verbs          []string
	Since          time.Time // when the request came
	Refused        bool      // only what was refused: 401, 403
	Failed         bool      // only what was not done: any code from 400 on
}

// mayTake is a quick look at a line, that spares reading most of a long log: false is certain.
func (f Filter) mayTake(line []byte) bool {
	for _, want := range []string{f.Name, f.Resource, f.Namespace} {
		if want == "" {
			continue
		}
		if text, err := json.Marshal(want); err == nil && !bytes.Contains(line, text) {
			return false
		}
	}
	return true
}

// Takes reports whether an event is wanted.
func (f Filter) Takes(e *auditv1.Event) bool {
	ref := e.ObjectRef
	if f.Resource != "" || f.Name != "" || f.Namespace != "" {
		switch {
		case ref == nil,
			f.Resource != "" && ref.Resource != f.Resource,
			f.Name != "" && ref.Name != f.Name && e.Annotations[GeneratedName] != f.Name,
			f.Namespace != "" && ref.Namespace != f.Namespace:
			return false
		}
	}
	if len(f.Users) > 0 && !slices.Contains(f.Users, e.User.Username) &&
		(e.ImpersonatedUser == nil || !slices.Contains(f.Users, e.ImpersonatedUser.Username)) {
		return false
	}
	if len(f.Verbs) > 0 && !slices.Contains(f.Verbs, e.Verb) {
		return false
	}
	if e.RequestReceivedTimestamp.Time.Before(f.Since) {
		return false
	}
	code := int32(0)
	if e.ResponseStatus != nil {
		code = e.ResponseStatus.Code
	}
	return (!f.Refused || code == http.StatusUnauthorized || code == http.StatusForbidden) &&
		(!f.Failed || code >= http.StatusBadRequest)
}
