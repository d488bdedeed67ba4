import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/**
 * Runs in the probed JVM, 8 or later, and runs no code of the classes that it loads: no initializer, no main. A class is
 * loaded, linked (which verifies it), and then every class, field and method that its code names is looked up, as the JVM
 * would do it when the code gets there.
 *
 * <p>The request comes in on descriptor 3, and what is proven goes out on descriptor 4, marked with a nonce.
 */
public final class MulliganProbe {
    private static OutputStream out;
    private static String nonce;
    private static final ClassLoader LOADER = ClassLoader.getSystemClassLoader();
    /** The first two parts of the names of the packages that are asked for: what is missing in them is missing for sure. */
    private static final Set<String> OWN = new HashSet<>();

    private MulliganProbe() {}

    public static void main(String[] args) throws IOException {
        String[] fields = new String(all(new FileInputStream("/proc/self/fd/3")), "UTF-8").split("\0", -1);
        out = new FileOutputStream("/proc/self/fd/4");
        nonce = fields[0];
        String[] names = Arrays.copyOfRange(fields, 2 + Integer.parseInt(fields[1]), fields.length);
        for (String n : names) {
            OWN.add(family(n));
        }
        say("up");
        for (int i = 0; i < names.length; i++) {
            say("load " + i);
            try {
                check(names[i]);
            } catch (Throwable e) {
                StringWriter text = new StringWriter();
                e.printStackTrace(new PrintWriter(text, true));
                System.err.print(text);
                System.err.flush();
                String line = e.toString();
                line = line.substring(0, Math.min(4096, line.length()));
                say("fail " + i + " " + line.replace("\\", "\\\\").replace("\n", "\\n"));
                Runtime.getRuntime().halt(1);
            }
        }
        say("done");
        Runtime.getRuntime().halt(0);
    }

    private static void say(String text) throws IOException {
        out.write((nonce + " " + text + "\n").getBytes("UTF-8"));
        out.flush();
    }

    private static byte[] all(InputStream in) throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        byte[] block = new byte[65536];
        for (int n; (n = in.read(block)) > 0; ) {
            all.write(block, 0, n);
        }
        in.close();
        return all.toByteArray();
    }

    private static String family(String name) {
        int first = name.indexOf('.');
        int second = name.indexOf('.', first + 1);
        return second < 0 ? name.substring(0, Math.max(0, first)) : name.substring(0, second);
    }

    private static void check(String name) throws Exception {
        Class<?> c = Class.forName(name, false, LOADER);
        c.getDeclaredMethods(); // links the class, and loads what its methods take and give
        c.getDeclaredConstructors();
        c.getDeclaredFields();
        for (Class<?> s = c.getSuperclass(); s != null && s.getClassLoader() != null; s = s.getSuperclass()) {
            s.getDeclaredMethods();
        }
        InputStream in = LOADER.getResourceAsStream(name.replace('.', '/') + ".class");
        if (in != null) {
            references(new DataInputStream(new java.io.ByteArrayInputStream(all(in))), c);
        }
        complete(c);
    }

    /** A class that is not abstract must have what its superclasses and interfaces leave open, if they are ours. */
    private static void complete(Class<?> c) {
        if (c.isInterface() || (c.getModifiers() & 0x0400) != 0) {
            return;
        }
        for (Method m : c.getMethods()) {
            if ((m.getModifiers() & 0x0400) != 0 && m.getDeclaringClass().getClassLoader() != null) {
                throw new AbstractMethodError(c.getName() + "." + m.getName());
            }
        }
    }

    /** Reads the constant pool of a class file and looks up what it refers to. */
    private static void references(DataInputStream in, Class<?> from) throws Exception {
        if (in.readInt() != 0xCAFEBABE) {
            throw new ClassFormatError(from.getName());
        }
        in.readInt();
        int n = in.readUnsignedShort();
        String[] text = new String[n];
        int[] tag = new int[n];
        int[] a = new int[n];
        int[] b = new int[n];
        for (int i = 1; i < n; i++) {
            tag[i] = in.readUnsignedByte();
            switch (tag[i]) {
                case 1:
                    text[i] = in.readUTF();
                    break;
                case 3:
                case 4:
                    in.readInt();
                    break;
                case 5:
                case 6:
                    in.readLong();
                    i++;
                    break;
                case 7:
                case 8:
                case 16:
                case 19:
                case 20:
                    a[i] = in.readUnsignedShort();
                    break;
                case 15:
                    in.readUnsignedByte();
                    in.readUnsignedShort();
                    break;
                default:
                    a[i] = in.readUnsignedShort();
                    b[i] = in.readUnsignedShort();
            }
        }
        for (int i = 1; i < n; i++) {
            if (tag[i] == 7) {
                find(text[a[i]], true);
            } else if (tag[i] >= 9 && tag[i] <= 11) {
                Class<?> owner = find(text[a[a[i]]], false);
                if (owner != null && owner.getClassLoader() != null) {
                    String name = text[a[b[i]]];
                    String type = text[b[b[i]]];
                    boolean there = tag[i] == 9 ? field(owner, name, type) : method(owner, name, type);
                    if (!there && tag[i] == 9) {
                        throw new NoSuchFieldError(owner.getName() + "." + name);
                    } else if (!there) {
                        throw new NoSuchMethodError(owner.getName() + "." + name + type);
                    }
                    if (tag[i] != 9 && owner.isInterface() != (tag[i] == 11)) {
                        throw new IncompatibleClassChangeError(owner.getName() + (owner.isInterface() ? " is" : " is not") + " an interface");
                    }
                }
            }
        }
    }

    /** The class that a reference names; null for an array, and for one of others that may be optional. */
    private static Class<?> find(String internal, boolean must) throws ClassNotFoundException {
        if (internal.startsWith("[")) {
            return null;
        }
        String name = internal.replace('/', '.');
        try {
            return Class.forName(name, false, LOADER);
        } catch (ClassNotFoundException | NoClassDefFoundError e) {
            if (must && OWN.contains(family(name))) {
                throw new NoClassDefFoundError(internal);
            }
            return null;
        }
    }

    private static boolean method(Class<?> in, String name, String type) {
        if (in == null) {
            return false;
        }
        if (name.equals("<init>")) {
            for (java.lang.reflect.Constructor<?> c : in.getDeclaredConstructors()) {
                if (descriptor(c.getParameterTypes(), void.class).equals(type)) {
                    return true;
                }
            }
            return false;
        }
        for (Method m : in.getDeclaredMethods()) {
            if (m.getName().equals(name) && descriptor(m.getParameterTypes(), m.getReturnType()).equals(type)) {
                return true;
            }
        }
        if (method(in.getSuperclass(), name, type) || in.isInterface() && method(Object.class, name, type)) {
            return true;
        }
        for (Class<?> i : in.getInterfaces()) {
            if (method(i, name, type)) {
                return true;
            }
        }
        // A few methods of the platform take any type.
        return in.getName().equals("java.lang.invoke.MethodHandle") || in.getName().equals("java.lang.invoke.VarHandle");
    }

    private static boolean field(Class<?> in, String name, String type) {
        for (Class<?> c = in; c != null; c = c.getSuperclass()) {
            for (java.lang.reflect.Field f : c.getDeclaredFields()) {
                if (f.getName().equals(name) && type(f.getType()).equals(type)) {
                    return true;
                }
            }
            for (Class<?> i : c.getInterfaces()) {
                if (field(i, name, type)) {
                    return true;
                }
            }
        }
        return false;
    }

    private static String descriptor(Class<?>[] takes, Class<?> gives) {
        StringBuilder d = new StringBuilder("(");
        for (Class<?> c : takes) {
            d.append(type(c));
        }
        return d.append(')').append(type(gives)).toString();
    }

    private static String type(Class<?> c) {
        if (c == void.class) {
            return "V";
        }
        String name = java.lang.reflect.Array.newInstance(c, 0).getClass().getName().substring(1);
        return name.replace('.', '/');
    }
}
