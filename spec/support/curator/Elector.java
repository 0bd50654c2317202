// A candidate by Curator's LeaderLatch: writes the lines of spec/support/ticker.c while it leads.
import java.io.FileOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.retry.ExponentialBackoffRetry;

public final class Elector {
    private static final long UPTIME_STEP = 20_000_000; // nanoseconds
    private static long asleep;

    // CLOCK_BOOTTIME, for which Java has no call: its own clock, and the time for which the host has slept.
    private static long now() {
        return System.nanoTime() + asleep;
    }

    private static void compareClocks() throws Exception {
        String uptime = Files.readString(Path.of("/proc/uptime")).split(" ")[0];
        long apart = (long) (Double.parseDouble(uptime) * 1e9) - System.nanoTime();
        asleep = Math.abs(apart) > UPTIME_STEP ? apart : 0;
    }

    public static void main(String[] args) throws Exception {
        compareClocks();
        String node = args[2];
        int session = (int) (Double.parseDouble(args[4]) * 1000);
        CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], session, session, new ExponentialBackoffRetry(100, 5));
        client.start();
        LeaderLatch latch = new LeaderLatch(client, args[1], node, LeaderLatch.CloseMode.NOTIFY_LEADER);
        latch.start();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                latch.close();
                client.close();
            } catch (Exception problem) {
                System.out.println(problem);
            }
        }));
        System.out.println("ready");
        long life = now();
        boolean led = false;
        try (FileOutputStream out = new FileOutputStream(args[3], true)) {
            while (true) {
                boolean leads = latch.hasLeadership();
                if (leads && !led) life = now();
                led = leads;
                if (leads) {
                    String line = now() + " " + node + " 0 leader " + ProcessHandle.current().pid() + " " + life + "\n";
                    out.write(line.getBytes(StandardCharsets.US_ASCII));
                }
                Thread.sleep(5);
            }
        }
    }
}
