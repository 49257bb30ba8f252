// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"slices"
	"strings"
)

// vainName is a name that was asked for in vain, as the program gave it.
type vainName struct {
	name  string
	codes []string
	times int
}

// vain finds the names that nobody had an answer for under any of the names that they were searched as: a program that
// asks for "db" asks for db.shop.svc.cluster.local first, and so on.
func vain(f Facts) (all []vainName) {
	if f.Pod == nil {
		return nil
	}
	found := map[string]bool{}
	asked := map[string]*vainName{}
	for _, n := range f.Names {
		base := bare(n.Name, f.Pod.Namespace)
		if n.Code == "NOERROR" {
			found[base] = true
			continue
		}
		v := asked[base]
		if v == nil {
			v = &vainName{name: base}
			asked[base] = v
		}
		v.times++
		if code := cmp.Or(n.Code, "no answer"); !slices.Contains(v.codes, code) {
			v.codes = append(v.codes, code)
		}
	}
	for base, v := range asked {
		if !found[base] {
			all = append(all, *v)
		}
	}
	slices.SortFunc(all, func(a, b vainName) int { return cmp.Compare(a.name, b.name) })
	return all
}

// bare takes off what a resolver has put behind a name to search for it.
func bare(name, namespace string) string {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if before, after, ok := strings.Cut(name, "."+namespace+".svc."); ok && after != "" {
		return before
	}
	if before, after, ok := strings.Cut(name, ".svc."); ok && after != "" {
		return before
	}
	return strings.TrimSuffix(name, ".cluster.local")
}

// meant finds the Service that was likely meant by a name that does not exist: one of the same name in another
// namespace, or one of the namespace whose name is nearly the same.
func meant(f Facts, name string) (s *Service, words string) {
	first, rest, _ := strings.Cut(name, ".")
	namespace, _, _ := strings.Cut(rest, ".")
	if f.Pod != nil && namespace == "" {
		namespace = f.Pod.Namespace
	}
	for i := range f.Services {
		if s := &f.Services[i]; s.Name == first && s.Namespace != namespace {
			return s, s.Name + "." + s.Namespace
		}
	}
	for i := range f.Services {
		s := &f.Services[i]
		if s.Namespace == namespace && s.Name != first && near(s.Name, first) {
			if f.Pod != nil && namespace == f.Pod.Namespace {
				return s, s.Name
			}
			return s, s.Name + "." + s.Namespace
		}
	}
	return nil, ""
}

// near reports whether two names differ by no more than a slip of the keyboard: two letters, in names long enough for
// it.
func near(a, b string) bool {
	most := 2
	if min(len(a), len(b)) < 5 {
		most = 1
	}
	if min(len(a), len(b)) < 3 || len(a) > 63 || len(b) > 63 || max(len(a), len(b))-min(len(a), len(b)) > most {
		return false
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			same := before
			if a[i] != b[j] {
				same++
			}
			before = row[j+1]
			row[j+1] = min(same, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)] <= most
}

// similar is the one of these that was likely meant; empty if there is none.
func similar(name string, all []string) string {
	plain := func(s string) string {
		return strings.ToLower(strings.NewReplacer("-", "", "_", "", ".", "").Replace(s))
	}
	for _, other := range all {
		if plain(other) == plain(name) || near(other, name) {
			return other
		}
	}
	return ""
}
