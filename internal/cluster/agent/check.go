// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/debug/debugask"
	"github.com/wherryproject/wherry/internal/hostdebug/guard"
)

// checkPod refuses a pod that is not named whole: one without a uid would be any of its name. (Pure.)
func checkPod(p wire.Pod) error {
	if p.Namespace == "" || p.Name == "" || p.UID == "" {
		return errors.New("pod: its namespace, name and uid are needed")
	}
	return nil
}

const (
	mostSeconds = 7 * 24 * 3600
	// leastMemory: below, runc itself is killed before it has started the command.
	leastMemory = 8 << 20
	leastCPUs   = 0.01
)

// checkSession refuses a session that cannot be. What may be is the API's to say. (Pure.)
func checkSession(s wire.Session) error {
	if err := checkPod(s.Pod); err != nil {
		return err
	}
	_, userErr := debugask.ParseUser(s.User)
	switch {
	case !slices.Contains([]string{wire.Shell, wire.Exec, wire.Files}, s.As):
		return fmt.Errorf("as: %q is none of %s, %s and %s", s.As, wire.Shell, wire.Exec, wire.Files)
	case s.As == wire.Shell && s.Container == "":
		return errors.New("container: a shell is in the namespaces of one; name it")
	case s.As != wire.Shell && len(s.Command) == 0 && s.Image == "":
		return errors.New("command: one is needed")
	case !guard.IsID(s.ID):
		return fmt.Errorf("id: %q does not have 12 hexadecimal digits", s.ID)
	case s.Seconds <= 0 || s.Seconds > mostSeconds:
		return fmt.Errorf("seconds: %d is not a time limit between 1 and %d", s.Seconds, mostSeconds)
	case s.Profile != "" && !slices.Contains(debugask.Profiles(), s.Profile):
		return fmt.Errorf("profile: there is none that is called %q", s.Profile)
	case userErr != nil:
		return fmt.Errorf("user: %w", userErr)
	case s.Memory != 0 && s.Memory < leastMemory:
		return fmt.Errorf("memory: %d bytes are too little to start a program in: give at least %d", s.Memory,
			leastMemory)
	case s.CPUs != 0 && (math.IsNaN(s.CPUs) || s.CPUs < leastCPUs || s.CPUs > 1e6):
		return fmt.Errorf("cpus: %v is not a number of CPUs above %v", s.CPUs, leastCPUs)
	case s.TTY && !(s.Stdin && s.Stdout):
		return errors.New("tty: a terminal has both input and output")
	case !s.Stdin && !s.Stdout && !s.Stderr:
		return errors.New("stdin, stdout, stderr: one of them is needed")
	}
	return nil
}
