// SPDX-License-Identifier: Apache-2.0

package accounts

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// User is a line of /etc/passwd.
type User struct {
	Name     string
	UID, GID int
	Home     string
}

// Names knows users and groups. The zero value reads the files when it is first asked.
type Names struct {
	once   sync.Once
	users  []User
	groups map[int]string
	in     map[string][]int // user to further groups
}

func (n *Names) read() {
	n.once.Do(func() {
		n.groups, n.in = map[int]string{}, map[string][]int{}
		for _, f := range fields("/etc/passwd", 6) {
			uid, err := strconv.Atoi(f[2])
			gid, err2 := strconv.Atoi(f[3])
			if err == nil && err2 == nil {
				n.users = append(n.users, User{f[0], uid, gid, f[5]})
			}
		}
		for _, f := range fields("/etc/group", 4) {
			gid, err := strconv.Atoi(f[2])
			if err != nil {
				continue
			}
			if _, ok := n.groups[gid]; !ok {
				n.groups[gid] = f[0]
			}
			for user := range strings.SplitSeq(f[3], ",") {
				n.in[user] = append(n.in[user], gid)
			}
		}
	})
}

// fields splits the lines of a file that have enough of them. A file that is not there has none: names are a comfort.
func fields(path string, least int) (out [][]string) {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(strings.TrimSuffix(line, "\n"), ":"); len(f) >= least {
			out = append(out, f)
		}
	}
	return out
}

// User returns a user's name, or the number.
func (n *Names) User(uid int) string {
	n.read()
	for _, u := range n.users {
		if u.UID == uid {
			return u.Name
		}
	}
	return strconv.Itoa(uid)
}

// Group returns a group's name, or the number.
func (n *Names) Group(gid int) string {
	n.read()
	if name, ok := n.groups[gid]; ok {
		return name
	}
	return strconv.Itoa(gid)
}

// Find returns the user of a name or number.
func (n *Names) Find(name string) (User, error) {
	n.read()
	uid, err := strconv.Atoi(name)
	for _, u := range n.users {
		if u.Name == name || err == nil && u.UID == uid {
			return u, nil
		}
	}
	if err != nil || uid < 0 {
		return User{}, fmt.Errorf("there is no user %q in /etc/passwd: give the number", name)
	}
	return User{Name: name, UID: uid, GID: uid, Home: "/"}, nil
}

// FindGroup returns the number of a group's name or number.
func (n *Names) FindGroup(name string) (int, error) {
	n.read()
	if gid, err := strconv.Atoi(name); err == nil && gid >= 0 {
		return gid, nil
	}
	for gid, g := range n.groups {
		if g == name {
			return gid, nil
		}
	}
	return 0, fmt.Errorf("there is no group %q in /etc/group: give the number", name)
}

// Owner reads USER, USER:GROUP, USER: or :GROUP; -1 is what is not named.
func (n *Names) Owner(text string) (uid, gid int, err error) {
	uid, gid = -1, -1
	user, group, ok := strings.Cut(text, ":")
	if _, err := n.Find(user); err != nil && !ok && strings.Contains(user, ".") {
		user, group, ok = strings.Cut(text, ".") // as it was written long ago
	}
	if user != "" {
		u, err := n.Find(user)
		if err != nil {
			return 0, 0, err
		}
		uid = u.UID
		if ok && group == "" {
			gid = u.GID
		}
	}
	if group != "" {
		if gid, err = n.FindGroup(group); err != nil {
			return 0, 0, err
		}
	}
	return uid, gid, nil
}
