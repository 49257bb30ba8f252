// SPDX-License-Identifier: Apache-2.0

package pullrecord

import (
	"slices"
	"time"

	"github.com/wherryproject/wherry/internal/imagename"
)

// Record is who has been let in to an image by its registries.
type Record struct {
	ID      string            `json:"id"`      // the runtime's
	Updated time.Time         `json:"updated"` // when it was last changed
	Access  map[string]Access `json:"access"`  // by repository, with its registry: each may have others
}

// Access is who has been let in to a repository.
type Access struct {
	// Everyone on the node: the registry asked for no credentials, or took the node's own.
	Everyone bool     `json:"everyone,omitempty"`
	Secrets  []Secret `json:"secrets,omitempty"`
}

// Secret is a pull secret that a registry took credentials of.
type Secret struct {
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Hash      string `json:"hash"` // of the credentials themselves
}

// sameObject reports whether two are the same object, whatever is in it now: credentials may be renewed.
func (s Secret) sameObject(other Secret) bool {
	return s.UID != "" && s.UID == other.UID && s.Namespace == other.Namespace && s.Name == other.Name
}

// Facts are what is known when a pod wants an image that is on the node.
type Facts struct {
	Policy Policy
	Image  imagename.Reference // as the container names it
	ByID   bool                // the container calls it by its id, which belongs to no repository
	Record *Record             // of the image's id; nil: none
	Begun  bool                // a pull of this name has begun, and it is not known how it ended
	Unread bool                // the records cannot be read
}

// Verdict is what becomes of it.
type Verdict struct {
	// Granted: the pod may use the image as it is.
	Granted bool
	// By is the pod's secret that it may do so by, if it is to be added to the record: new credentials in a secret that
	// is known, or known credentials in another one.
	By *Secret
}

// Decide says whether a pod may use an image that is on the node, or must have it pulled again. secrets are those of
// its pull secrets that are for the image's registry; they are asked for only if it depends on them.
func Decide(f Facts, secrets func() []Secret) Verdict {
	pulled := f.Record != nil || f.Begun || f.Unread
	switch {
	case f.Image.Own(): // built in, and never in a registry
		return Verdict{Granted: true}
	case !f.Policy.verifies(f.Image, pulled):
		return Verdict{Granted: true}
	case f.Unread || f.Record == nil:
		return Verdict{}
	case f.ByID:
		for _, access := range f.Record.Access {
			if access.Everyone {
				return Verdict{Granted: true}
			}
		}
		return Verdict{}
	}
	access := f.Record.Access[repository(f.Image)]
	if access.Everyone {
		return Verdict{Granted: true}
	}
	if len(access.Secrets) == 0 {
		return Verdict{}
	}
	for _, has := range secrets() {
		for _, known := range access.Secrets {
			same, equal := has.sameObject(known), has.Hash != "" && has.Hash == known.Hash
			if !same && !equal {
				continue
			}
			if slices.Contains(access.Secrets, has) {
				return Verdict{Granted: true}
			}
			return Verdict{Granted: true, By: &has}
		}
	}
	return Verdict{}
}

// maxSecrets bounds the secrets of one repository in a record: where namespaces come and go, it would grow without end.
const maxSecrets = 100

// add is a record with one more access to a repository. The newest secrets stay.
func (r Record) add(image imagename.Reference, more Access) Record {
	name := repository(image)
	out := Record{ID: r.ID, Updated: r.Updated, Access: map[string]Access{}}
	for key, access := range r.Access {
		out.Access[key] = access
	}
	access := out.Access[name]
	access.Everyone = access.Everyone || more.Everyone
	access.Secrets = slices.Clone(access.Secrets)
	for _, s := range more.Secrets {
		access.Secrets = slices.DeleteFunc(access.Secrets, s.sameObject)
		access.Secrets = append(access.Secrets, s)
	}
	if extra := len(access.Secrets) - maxSecrets; extra > 0 {
		access.Secrets = access.Secrets[extra:]
	}
	out.Access[name] = access
	return out
}
