// SPDX-License-Identifier: Apache-2.0

package clustering

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wherryproject/wherry/internal/api/klogs"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cluster/debugapi"
	"github.com/wherryproject/wherry/internal/quantities"
)

// namespaceFile is where a pod finds the name of its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// apiCommand holds the flags of `wherry cluster api`.
type apiCommand struct {
	debugapi.Config
	kubeconfig string
	memory     string
	logs       cmdline.LogFlags
}

// NewAPI is the command that serves the API of debugging on clusters. It is hidden: a Deployment runs it.
func NewAPI(t cmdline.Terminal) *cobra.Command {
	c := &apiCommand{Config: debugapi.Defaults()}
	cmd := &cobra.Command{
		Use:    "api",
		Short:  "Serve the aggregated API of debugging",
		Hidden: true,
		Long: `Serve the API debug.wherry.dev/v1alpha1, to which kube-apiserver passes requests. A Deployment runs this in the cluster;
by hand it needs --kubeconfig, --namespace and what wherry cluster manifest installs.

SIGTERM ends the sessions that go through this server, and then the server.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context(), t) },
	}
	c.addTo(cmd)
	return cmd
}

func (c *apiCommand) addTo(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig of kube-apiserver; default: that of the pod this runs in")
	fl.StringVar(&c.Namespace, "namespace", "",
		"namespace of this API and of the agents; default: $POD_NAMESPACE, or that of the pod this runs in")
	fl.StringVar(&c.BindAddress, "bind-address", c.BindAddress, "IP address to listen on; default: all")
	fl.IntVar(&c.Port, "secure-port", c.Port, "port to listen on; 0: any free one")
	fl.StringVar(&c.Service, "service-name", c.Service, "Service by which kube-apiserver reaches this API")
	fl.StringVar(&c.CASecret, "ca-secret", c.CASecret, "Secret that holds the CA; it is filled if it is empty")
	fl.StringVar(&c.APIService, "api-service", c.APIService, "APIService that is given the CA")
	fl.StringVar(&c.AgentAccount, "agent-service-account", c.AgentAccount, "service account of the agents")
	fl.StringVar(&c.AgentSelector, "agent-selector", c.AgentSelector, "labels of the agents' pods")
	fl.IntVar(&c.AgentPort, "agent-port", c.AgentPort, "port of the agents")
	fl.DurationVar(&c.Limits.TTL, "max-ttl", c.Limits.TTL, "maximum duration of a session")
	fl.StringVar(&c.memory, "max-memory", "2Gi", "maximum memory of a session")
	fl.Float64Var(&c.Limits.CPUs, "max-cpus", c.Limits.CPUs, "maximum CPUs of a session")
	c.logs.AddTo(cmd)
}

func (c *apiCommand) run(ctx context.Context, t cmdline.Terminal) (err error) {
	if c.Logger, err = c.logs.Logger(t.Err); err != nil {
		return err
	}
	klogs.Route(c.Logger)
	if err := c.complete(os.Getenv, os.ReadFile); err != nil {
		return cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	if c.Cluster, err = c.cluster(); err != nil {
		return cmdline.ExitWith(cmdline.ExitUsage, err)
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	s, err := debugapi.New(ctx, c.Config)
	if err != nil {
		return err
	}
	c.Logger.Info("the API of debugging is served", "port", s.Port(), "namespace", c.Namespace)
	return s.Run(ctx)
}

// complete finds out what no flag says.
func (c *apiCommand) complete(env func(string) string, read func(string) ([]byte, error)) error {
	memory, err := quantities.Parse(c.memory)
	if err != nil {
		return fmt.Errorf("--max-memory %q: not a quantity such as 2Gi", c.memory)
	}
	c.Limits.Memory = memory.Value()
	if c.Namespace = cmp.Or(c.Namespace, env("POD_NAMESPACE")); c.Namespace != "" {
		return nil
	}
	text, err := read(namespaceFile)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("--namespace is missing: outside of a pod it must be given")
	}
	c.Namespace = strings.TrimSpace(string(text))
	return err
}

// cluster is how kube-apiserver is reached.
func (c *apiCommand) cluster() (*rest.Config, error) {
	if c.kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig is missing: outside of a pod it must be given (%w)", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return config, nil
}
