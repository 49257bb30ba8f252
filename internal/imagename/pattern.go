// SPDX-License-Identifier: Apache-2.0

package imagename

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Patterns stand for images.
//
// A pattern is held against an image's name as it was given and with registry, library/ and tag spelled out; a pattern
// without a registry is one of Docker's, as a name is, unless it begins with a wildcard. In it * stands for any
// characters but /, ? for one, [a-z] for one of these; at its end, /** stands for all that lies below, and ** alone for
// everything. A pattern without a tag or digest does not stand for those with one: end it with * for these.
type Patterns []string

// below is the end of a pattern that stands for all names below it.
const below = "/**"

// everything is the pattern for all images.
const everything = "**"

// Check says what is wrong with a pattern.
func Check(pattern string) error {
	if strings.TrimSpace(pattern) != pattern || pattern == "" {
		return fmt.Errorf("%q is not a pattern: it is empty or has spaces around it", pattern)
	}
	if pattern == everything {
		return nil
	}
	inner := strings.TrimSuffix(pattern, below)
	if strings.Contains(inner, "**") {
		return fmt.Errorf("%q is not a pattern: ** is only allowed at the end, as in registry.example.com/tools/**",
			pattern)
	}
	if _, err := path.Match(inner, ""); err != nil {
		return fmt.Errorf("%q is not a pattern: %w; write it as registry.example.com/tools/*", pattern, err)
	}
	return nil
}

// Match returns the first pattern that stands for an image.
func (l Patterns) Match(image Reference, given string) (pattern string, ok bool) {
	return l.first(func(p string) []string {
		full := spelledOut(p)
		if full != p && image.Registry != dockerHub {
			// one of Docker's, even where a wildcard could stand for the dots of a registry: tools*/app, and
			// tools.evil.example/app
			return nil
		}
		return []string{p, full}
	}, given, image.Given, image.Full)
}

// Touch is Match for patterns that are to keep images out: more is kept out rather than less. A pattern without a tag
// or digest stands for all versions of an image, one with a tag also where the name has a digest besides, and a
// registry is the same in capitals, with its port written out, and by the other names that Docker's has.
func (l Patterns) Touch(image Reference, given string) (pattern string, ok bool) {
	names := []string{given, image.Given, image.Full}
	for _, registry := range []string{image.Registry, plain(image.Registry)} {
		repository := registry + "/" + image.Repository
		names = append(names, repository)
		if image.Tag != "" {
			names = append(names, repository+":"+image.Tag)
		}
		if image.Digest != "" {
			names = append(names, repository+"@"+image.Digest)
		}
		if image.Tag != "" && image.Digest != "" {
			names = append(names, repository+":"+image.Tag+"@"+image.Digest)
		}
	}
	return l.first(func(p string) []string {
		full := spelledOut(p)
		registry, rest, _ := strings.Cut(full, "/")
		return []string{p, full, plain(registry) + "/" + rest}
	}, names...)
}

// first is the first pattern of which one of the forms stands for one of the names.
func (l Patterns) first(forms func(string) []string, names ...string) (string, bool) {
	for _, p := range l {
		if p == everything {
			return p, true
		}
		for _, form := range forms(p) {
			if slices.ContainsFunc(names, func(name string) bool { return stands(form, name) }) {
				return p, true
			}
		}
	}
	return "", false
}

// plain is a registry's name as everybody writes it: names of hosts know no capitals, zeros before a port's number mean
// nothing to who connects to it, and 443 is the port of HTTPS anyway.
func plain(registry string) string {
	host, port := strings.ToLower(registry), ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.Trim(host[i+1:], "0123456789") == "" {
		host, port = host[:i], strings.TrimLeft(host[i+1:], "0")
	}
	switch host {
	case "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com":
		host = dockerHub
	}
	if port == "" || port == "443" {
		return host
	}
	return host + ":" + port
}

// dockerHub is the registry of names that have none.
const dockerHub = "docker.io"

// spelledOut writes the registry of a pattern out that has none, as it is done with names: the first part is a registry
// if it has a dot or a port, or is localhost. One that begins with a wildcard is left as it is: it stands for
// registries too.
func spelledOut(pattern string) string {
	first, _, deeper := strings.Cut(pattern, "/")
	switch {
	case !deeper:
		return dockerHub + "/library/" + pattern
	case strings.ContainsAny(first, ".:") || strings.IndexAny(first, "*?[") == 0 || first == "localhost":
		return pattern
	}
	return dockerHub + "/" + pattern
}

// stands reports whether a pattern stands for a name.
func stands(pattern, name string) bool {
	if above, ok := strings.CutSuffix(pattern, below); ok {
		parts := strings.Split(name, "/")
		n := strings.Count(above, "/") + 1
		if len(parts) <= n {
			return false
		}
		pattern, name = above, strings.Join(parts[:n], "/")
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}
