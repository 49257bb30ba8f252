// SPDX-License-Identifier: Apache-2.0

package imagename

// ownRegistry is no registry at all, though it has the form of one: images of that name come with wherry, or by an
// import.
const ownRegistry = "wherry.dev"

// Own reports whether an image's name is one of wherry's. No such image is ever asked of a registry, whatever the pull
// policy: whoever came to hold the name would choose what runs in every pod.
func (r Reference) Own() bool { return plain(r.Registry) == ownRegistry }

// BuiltIn reports whether a name is that of an image that is made from the program itself: the pods' first process, and
// the toolbox.
func BuiltIn(name string) bool {
	r, err := Parse(name)
	return err == nil && r.Own() && (r.Repository == "pause" || r.Repository == "toolbox")
}

// NotPulled says why an image of wherry's own names is not fetched.
func NotPulled(name string) string {
	if BuiltIn(name) {
		return name + " comes with wherry and is never fetched from a registry"
	}
	return name +
		" is never fetched from a registry, as its name is one of wherry's own: import it (wherry image import), or give it another name"
}
