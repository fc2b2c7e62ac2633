import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.Semaphore;

/**
 * Kafka's command-line tools, one after the other. Each line that comes in is a main class and its arguments,
 * with a tab between them. What the tool prints goes out, then a line that is the end of its output alone.
 */
public final class Commands {
    private static final String END = "--- end of output ---";
    private static final Semaphore ended = new Semaphore(0);

    private Commands() {}

    public static void main(String[] arguments)
            throws IOException, InterruptedException, ReflectiveOperationException {
        System.setErr(System.out);
        replaceExit();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t");
            Thread tool = new Thread(() -> run(words[0], Arrays.copyOfRange(words, 1, words.length)));
            tool.setDaemon(true);
            tool.start();
            ended.acquire();
            System.out.println();
            System.out.println(END);
            System.out.flush();
        }
    }

    private static void run(String tool, String[] arguments) {
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException failed) {
            failed.getCause().printStackTrace();
        } catch (ReflectiveOperationException missing) {
            missing.printStackTrace();
        } finally {
            ended.release();
        }
    }

    /**
     * A tool that wants to end the process does nothing more. It may catch whatever is thrown at it, so its
     * thread waits for ever instead. Kafka 4.4 has Exit in another package.
     */
    private static void replaceExit() throws ReflectiveOperationException {
        Class<?> exit;
        try {
            exit = Class.forName("org.apache.kafka.common.utils.internals.Exit");
        } catch (ClassNotFoundException before) {
            exit = Class.forName("org.apache.kafka.common.utils.Exit");
        }
        Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
        Object end = Proxy.newProxyInstance(procedure.getClassLoader(), new Class<?>[] {procedure},
                (self, method, arguments) -> {
                    ended.release();
                    Thread.currentThread().join();
                    return null;
                });
        exit.getMethod("setExitProcedure", procedure).invoke(null, end);
        exit.getMethod("setHaltProcedure", procedure).invoke(null, end);
    }
}
