// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"os"
	"strings"
	"testing"

	"github.com/wherryproject/wherry/internal/cluster/agent"
)

// DA-10: an agent whose sessions would not find the runtime says so at once, in the words of a session's process.
func TestFindRuntime(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for socket, want := range map[string]string{"there": "", "none": "there is no socket none", "crash": "has ended unexpectedly"} {
		err := agent.Place{Here: true}.FindRuntime(program, socket)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", socket, err)
		}
	}
}
