// SPDX-License-Identifier: Apache-2.0

package imagename

import "strings"

// IsID reports whether a container's image is written as the id of an image on a node, or as the beginning of one,
// rather than as a name: sha256:5905453c494f. Runtimes look such a thing up among the ids of what they have, where no
// name of that kind is known; Parse takes it for a tag of Docker's repository "sha256", which it is not. A name with a
// registry or a path is never an id.
func IsID(image string) bool {
	algorithm, hex, ok := strings.Cut(image, ":")
	switch algorithm {
	case "sha256", "sha384", "sha512":
	default:
		return false
	}
	return ok && isHex(hex)
}

// CalledByID reports whether a runtime that answered to the name given with the image of an id, and the names that it
// knows that image by, took the name for (the beginning of) the id. One that is among the names was not; nor is an
// alias of the runtime's own making, such as a short name that it completes.
func CalledByID(given, id string, names []string) bool {
	ref, err := Parse(given)
	if err != nil {
		return false
	}
	for _, name := range names {
		if other, err := Parse(name); err == nil && other.Registry == ref.Registry &&
			other.Repository == ref.Repository {
			return false
		}
	}
	if IsID(given) {
		return true
	}
	hex := strings.TrimSuffix(given, ":latest")
	_, idHex, ok := strings.Cut(id, ":")
	if !ok {
		idHex = id
	}
	return isHex(hex) && strings.HasPrefix(idHex, hex)
}

// isHex reports whether a text can be the beginning of a digest: ids have no capitals.
func isHex(text string) bool {
	return text != "" && strings.Trim(text, "0123456789abcdef") == ""
}
