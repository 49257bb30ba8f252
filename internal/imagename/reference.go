// SPDX-License-Identifier: Apache-2.0

package imagename

import (
	_ "crypto/sha256" // digests in references are checked by these
	_ "crypto/sha512"
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// Reference is an image's name taken apart.
type Reference struct {
	// Given is the name as it was written, with :latest when it has neither tag nor digest: what the runtime is asked
	// for.
	Given string
	// Full is Given with registry and library/ spelled out.
	Full string
	// Registry is the host and port, docker.io when none is written.
	Registry string
	// Repository is the path below the registry.
	Repository string
	Tag        string // "" when there is only a digest
	Digest     string // "" when there is none
}

// Parse reads an image reference as it stands in a container. The error says what is wrong with it.
func Parse(image string) (Reference, error) {
	if image == "" {
		return Reference{}, errors.New("the image name is empty")
	}
	if strings.TrimSpace(image) != image {
		return Reference{}, fmt.Errorf("the image name %q has spaces around it", image)
	}
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return Reference{}, fmt.Errorf("couldn't parse image name %q: %w%s", image, err, hint(image))
	}
	r := Reference{Given: image, Registry: reference.Domain(named), Repository: reference.Path(named)}
	if r.Registry == "" { // the library takes what cannot be a host for a part of the path, and then has none
		host, _, _ := strings.Cut(image, "/")
		return Reference{}, fmt.Errorf("couldn't parse image name %q: %q is not a valid name of a registry", image,
			host)
	}
	if reference.IsNameOnly(named) {
		r.Given += ":latest"
		named = reference.TagNameOnly(named)
	}
	if t, ok := named.(reference.Tagged); ok {
		r.Tag = t.Tag()
	}
	if d, ok := named.(reference.Digested); ok {
		r.Digest = d.Digest().String()
	}
	r.Full = named.String()
	return r, nil
}

// Asked is what a runtime is asked for when a container names an image: [Reference.Given], or what cannot be parsed as
// it is.
func Asked(image string) string {
	if ref, err := Parse(image); err == nil {
		return ref.Given
	}
	return image
}

// hint adds what people mostly get wrong.
func hint(image string) string {
	switch {
	case strings.HasPrefix(image, "http://"), strings.HasPrefix(image, "https://"),
		strings.HasPrefix(image, "docker://"):
		return " (leave out the scheme: registry.example/name:tag)"
	case strings.ToLower(image) != image:
		return fmt.Sprintf(" (did you mean %q?)", strings.ToLower(image))
	case strings.ContainsAny(image, " \t\n"):
		return " (it contains spaces)"
	}
	return ""
}
