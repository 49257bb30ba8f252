// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/datadir"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Flags say which server and namespace a command means.
type Flags struct{ ask.Where }

func (f *Flags) AddTo(cmd *cobra.Command) { f.AddFlags(cmd.PersistentFlags()) }

// AddServerTo is AddTo for what is in no namespace.
func (f *Flags) AddServerTo(cmd *cobra.Command) { f.AddServerFlags(cmd.PersistentFlags()) }

// Client is a connection to a server.
type Client struct {
	Config *rest.Config
	// Kubeconfig and Context are what kubectl would be told to reach the same; without Kubeconfig it finds its own.
	Kubeconfig, Context string

	socket string // of this machine's server, if that is who is asked
	wherry bool   // the server is known to be Wherry's
	kubernetes.Interface
}

// Connect makes a client and chooses the namespace.
func (f *Flags) Connect() (*Client, error) {
	variable := f.Variable(os.Getenv)
	if err := CheckKubeconfig(f.Kubeconfig, variable); err != nil {
		return nil, err
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.Kubeconfig
	var from Source
	if local := datadir.Kubeconfig(f.DataDir); f.Kubeconfig == "" && variable == "" {
		if file, err := os.Open(local); err == nil {
			file.Close()
			rules.ExplicitPath = local
			from.DataDir = f.DataDir
		} else if errors.Is(err, os.ErrPermission) {
			return nil, OnlyRoot(local)
		} else if f.DataDirGiven() {
			return nil, NeverStarted(f.DataDir)
		}
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: f.Context})
	config, err := loader.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, NeverStarted(f.DataDir)
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if f.Namespace == "" {
		if f.Namespace, _, err = loader.Namespace(); err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
	}
	config.QPS = -1 // one person's requests need no limit
	from.Guard(config)
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	made := &Client{Config: config, Interface: c, Kubeconfig: toName(cmp.Or(rules.ExplicitPath, variable)),
		Context: f.Context}
	if raw, err := loader.RawConfig(); err == nil && made.Context == "" {
		made.Context = raw.CurrentContext
	}
	if slices.Contains([]string{rules.ExplicitPath, variable}, datadir.Kubeconfig(f.DataDir)) {
		made.socket = datadir.Socket(f.DataDir)
	}
	return made, nil
}

// toName is a kubeconfig as commands that are run elsewhere name it: by its whole path. Several of them ($KUBECONFIG)
// are where such a command finds them, too: no flag names several.
func toName(file string) string {
	if file == "" || len(filepath.SplitList(file)) > 1 {
		return ""
	}
	if whole, err := filepath.Abs(file); err == nil {
		return whole
	}
	return file
}

// CompletePods completes the first argument with the names of pods.
func (f *Flags) CompletePods(cmd *cobra.Command, args []string,
	prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return f.pods(cmd.Context(), prefix), cobra.ShellCompDirectiveNoFileComp
}

// pods lists pods by name for the shell; without a server there are none.
func (f *Flags) pods(ctx context.Context, prefix string) (names []string) {
	c, err := f.Connect()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	pods, err := c.CoreV1().Pods(f.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	for _, p := range pods.Items {
		if strings.HasPrefix(p.Name, prefix) {
			names = append(names, p.Name)
		}
	}
	return names
}

// CompleteContainers completes a flag that names a container of the pod that is the first argument; which says which
// containers fit.
func (f *Flags) CompleteContainers(which func(podspec.ContainerRef) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		const none = cobra.ShellCompDirectiveNoFileComp
		if len(args) == 0 {
			return nil, none
		}
		c, err := f.Connect()
		if err != nil {
			return nil, none
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer cancel()
		name, _, _ := strings.Cut(PodName(args[0]), ":") // wherry cp POD:PATH
		pod, err := c.CoreV1().Pods(f.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, none
		}
		var names []string
		for ref := range podspec.Containers(&pod.Spec) {
			if which(ref) && strings.HasPrefix(ref.Container.Name, prefix) {
				names = append(names, ref.Container.Name)
			}
		}
		return names, none
	}
}

// Which containers a flag may name.
func AnyContainer(podspec.ContainerRef) bool      { return true }
func EphemeralOnes(ref podspec.ContainerRef) bool { return ref.Kind == podspec.Ephemeral }
func OwnContainers(ref podspec.ContainerRef) bool { return ref.Kind != podspec.Ephemeral }

// PodName is the name of a pod, as kubectl get -o name or a user gives it.
func PodName(text string) string {
	return strings.TrimPrefix(strings.TrimPrefix(text, "pods/"), "pod/")
}
