// SPDX-License-Identifier: Apache-2.0

package debugask

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// User is whom a debugger is asked to run as, by number: names are an image's own.
type User struct {
	UID int64
	GID *int64 // nil: the group that the user has in the image
}

// ParseUser reads UID[:GID]; nothing is no user.
func ParseUser(text string) (*User, error) {
	if text == "" {
		return nil, nil
	}
	uid, gid, grouped := strings.Cut(text, ":")
	user, err := number(uid)
	if err != nil {
		return nil, fmt.Errorf("%q is not a user: give numbers, UID or UID:GID, for example 1000 or 1000:1000", text)
	}
	if !grouped {
		return &User{UID: user}, nil
	}
	group, err := number(gid)
	if err != nil {
		return nil, fmt.Errorf("%q does not name a group after the colon: give numbers, UID:GID, for example 1000:1000",
			text)
	}
	return &User{UID: user, GID: &group}, nil
}

// number reads the number of a user or group, as far as Kubernetes takes them.
func number(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int64(min(n, math.MaxInt32)), err
}

// String is the user as ParseUser reads it.
func (u *User) String() string {
	switch {
	case u == nil:
		return ""
	case u.GID == nil:
		return strconv.FormatInt(u.UID, 10)
	}
	return fmt.Sprintf("%d:%d", u.UID, *u.GID)
}
