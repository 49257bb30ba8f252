// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	internal "k8s.io/apiserver/pkg/apis/audit"
)

const (
	redacted = "REDACTED"
	cutMark  = "…(cut)"
	maxText  = 8 << 10 // of a URI, a message, an annotation: what a client writes must not fill the log
	// of a verb and of the parts of an address, which nobody has looked at when the request is recorded
	maxName   = 1 << 10
	maxCauses = 16  // of a refusal
	maxHops   = 16  // addresses of a client: it may claim to come from as many proxies as fit into a header
	maxID     = 128 // of an Audit-ID, which clients may choose
	withheld  = "audit.wherry.dev/withheld"
	patchNote = "patch.webhook.admission.k8s.io/" // the library notes what a mutating webhook did to an object, in full
)

// redact returns an event without secrets and with bounded texts. It does not change the one it is given.
func redact(in *internal.Event) *internal.Event {
	ev := *in
	ev.RequestURI = cut(redactURI(ev.RequestURI))
	if len(ev.AuditID) > maxID {
		ev.AuditID = types.UID(strings.ToValidUTF8(string(ev.AuditID[:maxID]), ""))
	}
	ev.Verb = shorten(ev.Verb, maxName)
	if n := len(ev.SourceIPs); n > maxHops { // the last is the one that was seen here
		ev.SourceIPs = append(slices.Clone(ev.SourceIPs[:maxHops-1]), ev.SourceIPs[n-1])
	}
	ev.ObjectRef = shortRef(ev.ObjectRef)
	secret := holdsSecrets(ev.ObjectRef)
	if secret {
		hide(&ev)
	}
	ev.ResponseStatus = shortStatus(ev.ResponseStatus)
	var notes map[string]string // a copy, once one is needed
	for key, value := range ev.Annotations {
		drop, long := secret && strings.HasPrefix(key, patchNote), len(value) > maxText
		if !drop && !long {
			continue
		}
		if notes == nil {
			notes = maps.Clone(ev.Annotations)
		}
		if drop {
			delete(notes, key)
		} else {
			notes[key] = cut(value)
		}
	}
	if notes != nil {
		ev.Annotations = notes
	}
	return &ev
}

// hide takes what could show a secret out of an event: bodies, and messages that may quote them.
func hide(ev *internal.Event) {
	if ev.RequestObject != nil || ev.ResponseObject != nil {
		ev.RequestObject, ev.ResponseObject = nil, nil
		ev.Annotations = maps.Clone(ev.Annotations)
		if ev.Annotations == nil {
			ev.Annotations = map[string]string{}
		}
		ev.Annotations[withheld] = "bodies: " + ev.ObjectRef.Resource + " hold secrets"
	}
	s := ev.ResponseStatus
	if s == nil || s.Code != http.StatusBadRequest && s.Code != http.StatusUnprocessableEntity {
		return
	}
	bare := *s
	bare.Message, bare.Details = "", nil
	ev.ResponseStatus = &bare
}

// holdsSecrets reports whether bodies of requests for a resource may hold secrets.
func holdsSecrets(ref *internal.ObjectReference) bool {
	if ref == nil {
		return false
	}
	switch ref.APIGroup {
	case "":
		return ref.Resource == "secrets" || ref.Resource == "serviceaccounts" && ref.Subresource == "token"
	case "authentication.k8s.io":
		return ref.Resource == "tokenreviews"
	}
	return false
}

// secretive are parts of the names of query parameters that hold secrets: no API here takes them, but clients that
// should know better send them, and what is proxied has its own.
func secretive(name string) bool {
	name = strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
	for _, part := range []string{"token", "password", "passwd", "secret", "authorization", "apikey", "credential"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// redactURI replaces the values of query parameters that hold secrets. A query that cannot be read is replaced as a
// whole.
func redactURI(uri string) string {
	path, query, found := strings.Cut(uri, "?")
	if !found || query == "" {
		return uri
	}
	parts := strings.Split(query, "&")
	changed := false
	for i, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		plain, err := url.QueryUnescape(name)
		if err != nil {
			return path + "?" + redacted
		}
		if value != "" && secretive(plain) {
			parts[i], changed = name+"="+redacted, true
		}
	}
	if !changed {
		return uri
	}
	return path + "?" + strings.Join(parts, "&")
}

// shortRef bounds what an address names.
func shortRef(in *internal.ObjectReference) *internal.ObjectReference {
	if in == nil {
		return nil
	}
	out := *in
	for _, text := range []*string{&out.Resource, &out.Namespace, &out.Name, &out.APIGroup, &out.APIVersion,
		&out.ResourceVersion, &out.Subresource} {
		*text = shorten(*text, maxName)
	}
	out.UID = types.UID(shorten(string(out.UID), maxName))
	return &out
}

// shortStatus bounds an answer, which quotes what is wrong: whole values that the client has sent, once for each fault.
func shortStatus(in *metav1.Status) *metav1.Status {
	if in == nil {
		return nil
	}
	out := *in
	out.Message = cut(in.Message)
	if d := in.Details; d != nil {
		short := *d
		short.Name, short.UID = shorten(d.Name, maxName), types.UID(shorten(string(d.UID), maxName))
		short.Group, short.Kind = shorten(d.Group, maxName), shorten(d.Kind, maxName)
		short.Causes = slices.Clone(d.Causes[:min(len(d.Causes), maxCauses)])
		for i := range short.Causes {
			c := &short.Causes[i]
			c.Message, c.Field = shorten(c.Message, maxName), shorten(c.Field, maxName)
		}
		out.Details = &short
	}
	return &out
}

func cut(text string) string { return shorten(text, maxText) }

// shorten keeps the first bytes of a text, whole characters, and says that it did.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + cutMark
}
